(** Numbers of the Python code, one a line. The comment says where each stands: the name of a module,
    or a function and the expression in it. tests/test_machine_checked.py compares them. *)

From Coq Require Import Reals ZArith.

(* Clip and quantize. *)
Definition LIMIT : Z := 2 ^ 24. (* sklearn_dp/_privacy/_grid.py: LIMIT *)
Definition MOST_COLUMNS : Z := 2 ^ 14. (* sklearn_dp/_privacy/_grid.py: MOST_COLUMNS *)
Definition least_exponent : Z := - 980. (* sklearn_dp/_privacy/_grid.py: for_radius | -980 *)
Definition grid_bits : Z := 24. (* sklearn_dp/_privacy/_grid.py: for_radius | 24 *)
Definition over : R := / 2 ^ 50. (* sklearn_dp/_privacy/_grid.py: clip_integer_rows | 2.0**-50 *)
Definition margin : R := / 2 ^ 48. (* sklearn_dp/_privacy/_grid.py: clip_integer_rows | 2.0**-48 *)
Definition factor_margin : R := / 2 ^ 48. (* sklearn_dp/_rows/rows.py: clipped_sums | 2.0**-48 *)
Definition WEIGHT_BITS : Z := 10. (* sklearn_dp/_rows/rows.py: WEIGHT_BITS *)

(* Weights. *)
Definition root_bits : Z := 20. (* sklearn_dp/_privacy/_products.py: exact_gram | 20 *)
Definition WEIGHT_STEPS : Z := 2 ^ 20. (* sklearn_dp/_privacy/_units.py: _WEIGHT_STEPS *)

(* The sampler. *)
Definition WORD : Z := 64. (* sklearn_dp/_privacy/_noise.py: WORD *)
Definition FEWEST : R := 2 ^ 32. (* sklearn_dp/_privacy/_noise.py: _FEWEST *)
Definition REL : R := / 2 ^ 44. (* sklearn_dp/_privacy/_noise.py: _REL *)
Definition ABS : R := / 2 ^ 50. (* sklearn_dp/_privacy/_noise.py: _ABS *)
Definition WIDTH : R := 64 / 100. (* sklearn_dp/_privacy/_noise.py: _WIDTH *)
Definition MAX_SCALE : R := 2 ^ 50. (* sklearn_dp/_privacy/_noise.py: MAX_SCALE *)

(* Accounting. *)
Definition ROUNDING : R := 16 / 2 ^ 52. (* sklearn_dp/_costs/numbers.py: ROUNDING *)
