(** Each statement of Statements.v has a proof. The axioms that the proofs rest on are printed, and
    `make prove` compares them with axioms.txt. *)

From Coq Require Import Reals List ZArith Lra Lia.
From Flocq Require Import Core.
From ReleasePath Require Import Constants Privacy Noise Floats Tables Sampler Statements.
From ReleasePath Require Laws Gaussian Clip Sums Bounds Draw Epsilon Curve.
Import ListNotations.
Open Scope R_scope.

Theorem clipped_rows_are_short : Statements.clipped_rows_are_short.
Proof. exact Clip.clip_is_short. Qed.

Theorem clipped_residuals_are_short : Statements.clipped_residuals_are_short.
Proof. exact Clip.factor_is_short. Qed.

Theorem steps_fit : Statements.steps_fit.
Proof.
  intros radius e row Hr He L. split; [|split; [|split]].
  - rewrite (Clip.inverse_unit radius e Hr He). pose proof (Clip.e_range radius e Hr He).
    unfold finite. rewrite Rabs_right by (apply Rle_ge, bpow_ge_0). apply bpow_lt. lia.
  - exact (Clip.shrunk_le radius e Hr He row).
  - exact (Clip.entries_le radius e Hr He row).
  - apply Z.le_lt_trans with (1 := Clip.squares_fit radius e Hr He row L). easy.
Qed.

Theorem quantized_rows_are_short : Statements.quantized_rows_are_short.
Proof.
  intros radius e row Hr He L. split.
  - now apply Clip.quantized_is_short.
  - now apply Clip.steps_eq.
Qed.

Theorem sigma_is_never_too_small : Statements.sigma_is_never_too_small.
Proof. intros s rho Hs Hr F. apply Clip.sigma_is_enough; auto. apply F. Qed.

Theorem sums_have_no_order : Statements.sums_have_no_order.
Proof. exact @Sums.order_does_not_matter. Qed.

Theorem a_unit_moves_a_sum_by_its_claim : Statements.a_unit_moves_a_sum_by_its_claim.
Proof. exact @Sums.one_unit. Qed.

Theorem groups_are_units : Statements.groups_are_units.
Proof. intros A rows. now apply Sums.group_weights. Qed.

Theorem claim_of_counts : Statements.claim_of_counts.
Proof. exact @Sums.counts_claim. Qed.

Theorem claim_of_sums : Statements.claim_of_sums.
Proof. exact @Sums.sums_claim. Qed.

Theorem claim_of_moments : Statements.claim_of_moments.
Proof.
  intros A d limit diagonal off vector Hl H1 H2 L S. unfold WEIGHT_STEPS.
  apply Sums.moments_claim with limit; auto; [easy|]. exact Sums.root_is_short.
Qed.

Theorem claim_of_ranks : Statements.claim_of_ranks.
Proof. exact @Sums.ranks_claim. Qed.

Theorem claim_of_numbers : Statements.claim_of_numbers.
Proof. exact @Sums.numbers_claim. Qed.

Theorem claim_of_both : Statements.claim_of_both.
Proof. exact @Sums.beside_claim. Qed.

Theorem noise_is_a_law : Statements.noise_is_a_law.
Proof. exact Gaussian.noisy_law. Qed.

Theorem noise_is_private : Statements.noise_is_private.
Proof.
  intros D near rho s sigmas q Hr H Hq. split.
  - now apply (Gaussian.gaussian near rho s).
  - now apply (Gaussian.gaussian_is_gaussian near rho s).
Qed.

Theorem costs_add_up : Statements.costs_add_up.
Proof. exact @Laws.composition. Qed.

Theorem gaussian_fits_are_private : Statements.gaussian_fits_are_private.
Proof.
  intros D near rho mu epsilon f C Hm H. apply Curve.gaussian_fit with rho; auto.
  intros x. exact (Curve.gaussian_published_law near rho f x C).
Qed.

Theorem mu_is_never_too_small : Statements.mu_is_never_too_small.
Proof. exact Epsilon.mu_is_enough. Qed.

Theorem zcdp_is_dp : Statements.zcdp_is_dp.
Proof. intros D A near rho delta b M. apply Laws.conversion. Qed.

Theorem epsilon_is_never_too_small : Statements.epsilon_is_never_too_small.
Proof.
  intros log log1p rho delta b total Hl Fr Rr Fb Rb Fd Rd sizes H.
  apply Epsilon.computed_epsilon_is_enough; auto.
  replace (4 * / 2 ^ 53) with (bpow radix2 (-51)) by (simpl; lra). exact H.
Qed.

Theorem integer_bounds_are_bounds : Statements.integer_bounds_are_bounds.
Proof. exact Bounds.normal_tail_bounds_correct. Qed.

Theorem exponential_bounds_are_bounds : Statements.exponential_bounds_are_bounds.
Proof. exact Bounds.exp_bounds_correct. Qed.

Theorem exact_path_is_right : Statements.exact_path_is_right.
Proof. exact Draw.exact_draw. Qed.

Theorem fast_path_is_right : Statements.fast_path_is_right.
Proof. exact Draw.fast_draw. Qed.

Theorem one_number_is_drawn : Statements.one_number_is_drawn.
Proof. exact Draw.one_draw. Qed.

Theorem draws_have_the_law : Statements.draws_have_the_law.
Proof. exact Draw.draws_have_the_law. Qed.

Theorem release_path : Statements.release_path.
Proof.
  intros scale d radius rho e Hs Hd Hr He Frho Hrho. unfold noisy_sum.
  set (vector := fun r : row d => quantize (unit_of e) radius (proj1_sig r)).
  set (limit := steps_of (unit_of e) radius).
  assert (P : 0 < limit).
  { apply Rlt_le_trans with (2 := Clip.steps_ge radius e Hr He). apply bpow_gt_0. }
  assert (C : claim (1 * d) scale (blocks d [limit])
    (sums scale 1 d (fun _ => 0%nat) vector)).
  { apply claim_of_sums; auto.
    - intros [x Lx]. unfold vector, quantize, clip, in_steps, shrunk. cbn [proj1_sig].
      destruct Rle_dec, Rlt_dec; rewrite ?map_length; assumption.
    - intros [x Lx] r E. injection E as <-. unfold vector. cbn [proj1_sig].
      unfold limit. rewrite (Clip.steps_eq radius e Hr He).
      apply quantized_rows_are_short; auto. now rewrite Lx. }
  unfold blocks in C. simpl in C. rewrite app_nil_r, Nat.add_0_r in C.
  apply noise_is_private with (s := repeat limit d); auto.
  - clear - P Hrho Frho. induction d as [|d IH]; constructor; auto.
    split; [assumption|]. now apply sigma_is_never_too_small.
  - intros x x' H. now apply (a_unit_moves_a_sum_by_its_claim _ d scale).
Qed.

Theorem fits_are_private : Statements.fits_are_private.
Proof.
  intros D near f log log1p rho delta b total C Hl Fr Rr Fb Rb Fd Rd sizes H.
  pose proof (costs_add_up D near rho f C) as Z. apply Laws.dp_weaken with (epsilon_of rho delta b).
  - apply Z.
  - now apply epsilon_is_never_too_small.
  - apply zcdp_is_dp; [lra| |assumption]. apply Rlt_le_trans with (2 := proj1 Rb). apply bpow_gt_0.
Qed.

Definition all_proved := (
  clipped_rows_are_short, clipped_residuals_are_short, steps_fit, quantized_rows_are_short, sigma_is_never_too_small,
  sums_have_no_order, a_unit_moves_a_sum_by_its_claim, groups_are_units,
  claim_of_counts, claim_of_sums, claim_of_moments, claim_of_ranks, claim_of_numbers, claim_of_both,
  noise_is_a_law, noise_is_private, costs_add_up, gaussian_fits_are_private, mu_is_never_too_small, zcdp_is_dp, epsilon_is_never_too_small,
  integer_bounds_are_bounds, exponential_bounds_are_bounds, exact_path_is_right,
  fast_path_is_right, one_number_is_drawn, draws_have_the_law,
  release_path, fits_are_private).
Print Assumptions all_proved.
