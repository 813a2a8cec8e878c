"""The papers' own variants that estimators offer as options and do not use by default.

One room for each paper, to be read beside it; the page of `doc/development` that begins with
"acceptance" and has the name of the room says which statement of the paper is where.

========================  =================================================================
`easy_instances`          Cohen et al., ICML 2021: `aggregator="k_averages"` and
                          `"noisy_centers"`, `DPGaussianMixture(method="k_tuples")`
`feddp_kmeans`            Scott et al., ICML 2025: `FederatedDPKMeans(method="paper")`
`friendly_core`           Tsfadia et al., ICML 2022: `FriendlyMean(refine=False)`
`one_cluster`             Nissim et al., PODS 2016: `center_method="paper"`,
                          `radius_method="rec_concave"`, and `int_point`
`separated_gaussians`     Kamath et al., NeurIPS 2019: `DPGaussianMixture(method="partition")`
========================  =================================================================

A module here stands on the floor of the room whose option it answers: it may import what that room
may, and only the module that holds the option imports it (`tests/test_architecture.py`).
"""
