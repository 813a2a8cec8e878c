(** Alternating series: how far their partial sums are off, in real numbers. *)

From Coq Require Import Reals List ZArith Lra Lia Machin.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Raux.
From ReleasePath Require Import Noise Laws Gaussian.
Open Scope R_scope.

(** Operations of Coquelicot as those of the reals. *)
Ltac flat :=
  unfold minus, plus, opp, scal, mult;
  cbn -[Rplus Rminus Rmult Ropp Rinv Rdiv pow INR fact Nat.mul Nat.odd];
  match goal with |- @eq _ ?a ?b => change (@eq R a b) end.

(** A function whose slope is dominated moves no farther. *)
Lemma dominated (f g f' g' : R -> R) x : 0 <= x ->
  (forall t, 0 <= t <= x -> is_derive f t (f' t)) ->
  (forall t, 0 <= t <= x -> is_derive g t (g' t)) ->
  (forall t, 0 <= t <= x -> Rabs (f' t) <= g' t) ->
  Rabs (f x - f 0) <= g x - g 0.
Proof.
  intros Hx F G H.
  assert (M : forall (h h' : R -> R), (forall t, 0 <= t <= x -> is_derive h t (h' t)) ->
    (forall t, 0 <= t <= x -> 0 <= h' t) -> h 0 <= h x).
  { intros h h' D P. destruct (MVT_gen h 0 x h') as (c & C & E).
    - intros t Ht. apply D. rewrite Rmin_left, Rmax_right in Ht by lra. lra.
    - intros t Ht. apply continuity_pt_filterlim.
      apply (ex_derive_continuous (V := R_NormedModule)). eexists. apply D.
      rewrite Rmin_left, Rmax_right in Ht by lra. lra.
    - rewrite Rmin_left, Rmax_right in C by lra. specialize (P c C).
      assert (0 <= h' c * (x - 0)) by (apply Rmult_le_pos; lra). lra. }
  apply Rabs_le. split.
  - assert (g 0 + f 0 <= g x + f x); [|lra].
    apply (M (fun t => g t + f t) (fun t => g' t + f' t)).
    + intros t Ht. apply (is_derive_plus g f t); auto.
    + intros t Ht. specialize (H t Ht). apply Rabs_le_inv in H. lra.
  - assert (g 0 - f 0 <= g x - f x); [|lra].
    apply (M (fun t => g t - f t) (fun t => g' t - f' t)).
    + intros t Ht. apply (is_derive_minus g f t); auto.
    + intros t Ht. specialize (H t Ht). apply Rabs_le_inv in H. lra.
Qed.

Fixpoint series (a : nat -> R) (n : nat) : R :=  (* the sum of n terms *)
  match n with O => 0 | S n => series a n + a n end.

(** ** exp *)

Definition power_term (y : R) (n : nat) := y ^ n / INR (fact n).

Lemma power_term_S y n : power_term y (S n) = power_term y n * y / INR (S n).
Proof.
  unfold power_term. rewrite fact_simpl, mult_INR. simpl pow. field.
  split; [apply INR_fact_neq_0|apply not_0_INR; lia].
Qed.

Lemma power_term_pos y n : 0 <= y -> 0 <= power_term y n.
Proof. intros H. apply Rmult_le_pos; [now apply pow_le|]. left. apply Rinv_0_lt_compat, INR_fact_lt_0. Qed.

Lemma power_term_0 n : power_term 0 (S n) = 0.
Proof. unfold power_term. simpl pow. unfold Rdiv. ring. Qed.

Lemma is_derive_constant c t : is_derive (fun _ : R => c) t 0.
Proof. auto_derive; trivial. Qed.

Lemma is_derive_monomial n c t : is_derive (fun y => y ^ S n * c) t (c * (INR (S n) * t ^ n)).
Proof.
  apply (is_derive_ext (fun y => c * y ^ S n)); [intros y; apply Rmult_comm|].
  apply (is_derive_scal (fun y => y ^ S n)).
  replace (INR (S n) * t ^ n) with (INR (S n) * 1 * t ^ Init.Nat.pred (S n)) by (simpl pow; ring).
  apply (is_derive_pow (fun y => y) (S n) t 1). apply (is_derive_id (K := R_AbsRing)).
Qed.

Lemma is_derive_power_term n t : is_derive (fun y => power_term y (S n)) t (power_term t n).
Proof.
  unfold power_term, Rdiv. evar_last; [apply is_derive_monomial|].
  rewrite fact_simpl, mult_INR. field. split; [apply INR_fact_neq_0|apply not_0_INR; lia].
Qed.

Definition sign (n : nat) : R := if Nat.odd n then - 1 else 1.

Lemma sign_S n : sign (S n) = - sign n.
Proof. unfold sign. rewrite Nat.odd_succ, <- Nat.negb_odd. destruct Nat.odd; simpl; ring. Qed.

(** |exp(-y) - the sum of n terms| is at most the next one. *)
Lemma exp_rest n y : 0 <= y ->
  Rabs (exp (- y) - series (fun j => sign j * power_term y j) n) <= power_term y n.
Proof.
  revert y. induction n as [|n IH]; intros y Hy.
  - simpl. unfold power_term. simpl. rewrite Rminus_0_r, Rabs_right by (left; apply exp_pos).
    apply Rle_trans with (exp 0); [apply exp_le; lra|rewrite exp_0; lra].
  - assert (S0 : forall m, series (fun j => sign j * power_term 0 j) (S m) = 1).
    { induction m as [|m IHm].
      - simpl. unfold sign, power_term. simpl. field.
      - change (series (fun j => sign j * power_term 0 j) (S (S m)))
          with (series (fun j => sign j * power_term 0 j) (S m) + sign (S m) * power_term 0 (S m)).
        rewrite IHm, power_term_0. ring. }
    assert (D : forall m t, is_derive (fun y => series (fun j => sign j * power_term y j) (S m)) t
                  (- series (fun j => sign j * power_term t j) m)).
    { induction m as [|m IHm]; intros t.
      - apply (is_derive_ext (fun _ => 1)).
        + intros z. simpl. unfold sign, power_term. simpl. field.
        + simpl. rewrite Ropp_0. apply is_derive_constant.
      - evar_last.
        + apply (is_derive_plus (fun y => series (fun j => sign j * power_term y j) (S m))
            (fun y => sign (S m) * power_term y (S m))); [apply IHm|].
          apply (is_derive_scal (fun y => power_term y (S m))). apply is_derive_power_term.
        + flat. rewrite sign_S.
          change (series (fun j => sign j * power_term t j) (S m))
            with (series (fun j => sign j * power_term t j) m + sign m * power_term t m). ring. }
    pose proof (dominated
      (fun y => exp (- y) - series (fun j => sign j * power_term y j) (S n))
      (fun y => power_term y (S n))
      (fun t => - (exp (- t) - series (fun j => sign j * power_term t j) n))
      (fun t => power_term t n) y Hy) as H.
    cbv beta in H. rewrite S0, Ropp_0, exp_0, power_term_0, Rminus_eq_0, !Rminus_0_r in H. apply H.
    + intros t _. evar_last.
      * apply (is_derive_minus (fun y => exp (- y))
          (fun y => series (fun j => sign j * power_term y j) (S n))); [|apply D].
        auto_derive; [trivial|reflexivity].
      * flat. ring.
    + intros t _. apply is_derive_power_term.
    + intros t Ht. rewrite Rabs_Ropp. apply IH. lra.
Qed.

(** The positive series stays below exp. *)
Lemma exp_part n y : 0 <= y -> series (power_term y) n <= exp y.
Proof.
  revert y. induction n as [|n IH]; intros y Hy; [simpl; left; apply exp_pos|].
  assert (D : forall m t, is_derive (fun y => series (power_term y) (S m)) t
                (series (power_term t) m)).
  { induction m as [|m IHm]; intros t.
    - apply (is_derive_ext (fun _ => 1)).
      + intros z. simpl. unfold power_term. simpl. field.
      + apply is_derive_constant.
    - apply (is_derive_plus (fun y => series (power_term y) (S m)) (fun y => power_term y (S m)));
        [apply IHm|apply is_derive_power_term]. }
  assert (S0 : forall m, series (power_term 0) (S m) = 1).
  { induction m as [|m IHm]; [simpl; unfold power_term; simpl; field|].
    change (series (power_term 0) (S (S m)))
      with (series (power_term 0) (S m) + power_term 0 (S m)).
    rewrite IHm, power_term_0. ring. }
  pose proof (dominated (fun y => series (power_term y) (S n)) exp
    (fun t => series (power_term t) n) exp y Hy) as H.
  cbv beta in H. rewrite S0, exp_0 in H.
  assert (Rabs (series (power_term y) (S n) - 1) <= exp y - 1).
  { apply H.
    - intros t _. apply D.
    - intros t _. apply is_derive_exp.
    - intros t Ht. rewrite Rabs_right; [apply IH; lra|]. apply Rle_ge. clear - Ht.
      induction n as [|n IHn]; [simpl; lra|]. simpl.
      pose proof (power_term_pos t n (proj1 Ht)). lra. }
  apply Rabs_le_inv in H0. lra.
Qed.

Lemma power_term_le y n : 0 <= y -> power_term y n <= exp y.
Proof.
  intros Hy. apply Rle_trans with (2 := exp_part (S n) y Hy). simpl.
  assert (0 <= series (power_term y) n); [|lra].
  induction n as [|n IHn]; [simpl; lra|]. simpl. pose proof (power_term_pos y n Hy). lra.
Qed.

(** How rounded terms fall behind: one unit at each step, shrunk by all later ones. *)
Lemma lag n y : 0 <= y ->
  y / INR (S n) * series (power_term y) n + 1 <= series (power_term y) (S n).
Proof.
  intros Hy. assert (H : y * series (power_term y) n <= INR (S n) * (series (power_term y) (S n) - 1)).
  { induction n as [|n IH].
    - simpl. unfold power_term. simpl. right. field.
    - change (series (power_term y) (S (S n)))
        with (series (power_term y) (S n) + power_term y (S n)).
      change (series (power_term y) (S n)) with (series (power_term y) n + power_term y n) at 1.
      rewrite (S_INR (S n)).
      assert (E : INR (S n) * power_term y (S n) = power_term y n * y).
      { rewrite power_term_S. field. apply not_0_INR. lia. }
      assert (P : 0 <= series (power_term y) (S n) - 1).
      { clear - Hy. induction n as [|n IHn].
        - simpl. unfold power_term. simpl. lra.
        - simpl in *. pose proof (power_term_pos y (S n) Hy). lra. }
      pose proof (power_term_pos y (S n) Hy). lra. }
  assert (0 < INR (S n)) by (apply lt_0_INR; lia).
  apply Rmult_le_reg_l with (INR (S n)); [assumption|].
  rewrite Rmult_plus_distr_l, Rmult_1_r.
  replace (INR (S n) * (y / INR (S n) * series (power_term y) n))
    with (y * series (power_term y) n) by (field; lra). lra.
Qed.

(** ** The integral of the Gaussian density *)

Definition odd_term (x : R) (j : nat) : R :=
  x * power_term (x ^ 2 / 2) j / (1 + 2 * INR j).

Lemma odd_pos j : 0 < 1 + 2 * INR j.
Proof. pose proof (pos_INR j). lra. Qed.

Lemma is_derive_odd_term j t : is_derive (fun x => odd_term x j) t (power_term (t ^ 2 / 2) j).
Proof.
  unfold odd_term, power_term. pose proof (odd_pos j). pose proof (INR_fact_neq_0 j).
  apply (is_derive_ext (fun x => x ^ S (2 * j) * / (2 ^ j * INR (fact j) * (1 + 2 * INR j)))).
  - intros x. replace (x ^ S (2 * j)) with (x * (x ^ 2) ^ j) by (rewrite <- pow_mult; reflexivity).
    flat. unfold Rdiv. rewrite Rpow_mult_distr, pow_inv.
    field. repeat split; try lra. apply pow_nonzero. lra.
  - evar_last; [apply is_derive_monomial|].
    rewrite S_INR, mult_INR, pow_mult. unfold Rdiv. rewrite Rpow_mult_distr, pow_inv.
    change (INR 2) with 2. field. repeat split; try lra. apply pow_nonzero. lra.
Qed.

Definition area (x : R) : R := RInt (fun s => exp (- (s ^ 2 / 2))) 0 x.

Lemma is_derive_area t : is_derive area t (exp (- (t ^ 2 / 2))).
Proof.
  apply (is_derive_RInt (fun s => exp (- (s ^ 2 / 2))) area 0 t).
  - apply filter_forall. intros y. apply (RInt_correct (V := R_CompleteNormedModule)).
    apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros z _.
    apply (ex_derive_continuous (V := R_NormedModule)). auto_derive. trivial.
  - apply (ex_derive_continuous (V := R_NormedModule)). auto_derive. trivial.
Qed.

Lemma area_rest n x : 0 <= x ->
  Rabs (area x - series (fun j => sign j * odd_term x j) n) <= odd_term x n.
Proof.
  intros Hx.
  assert (D : forall m t, is_derive (fun x => series (fun j => sign j * odd_term x j) m) t
                (series (fun j => sign j * power_term (t ^ 2 / 2) j) m)).
  { induction m as [|m IHm]; intros t; [simpl; apply is_derive_constant|].
    apply (is_derive_plus (fun x => series (fun j => sign j * odd_term x j) m)
      (fun x => sign m * odd_term x m)); [apply IHm|].
    apply (is_derive_scal (fun x => odd_term x m)), is_derive_odd_term. }
  assert (Z : forall m, odd_term 0 m = 0) by (intros; unfold odd_term, Rdiv; ring).
  assert (S0 : forall m, series (fun j => sign j * odd_term 0 j) m = 0).
  { induction m as [|m IHm]; [reflexivity|]. simpl. rewrite IHm, Z. ring. }
  pose proof (dominated (fun x => area x - series (fun j => sign j * odd_term x j) n)
    (fun x => odd_term x n)
    (fun t => exp (- (t ^ 2 / 2)) - series (fun j => sign j * power_term (t ^ 2 / 2) j) n)
    (fun t => power_term (t ^ 2 / 2) n) x Hx) as H.
  assert (A0 : area 0 = 0) by (unfold area; now rewrite RInt_point).
  cbv beta in H. rewrite S0, Z, A0, Rminus_eq_0, !Rminus_0_r in H. apply H.
  - intros t _. apply (is_derive_minus area); [apply is_derive_area|apply D].
  - intros t _. apply is_derive_odd_term.
  - intros t _. apply exp_rest. pose proof (pow2_ge_0 t). lra.
Qed.

Lemma area_density x : RInt (density 1) 0 x = area x / sqrt (2 * PI).
Proof.
  unfold area. assert (0 < sqrt (2 * PI)) by (apply sqrt_lt_R0; pose proof PI_RGT_0; lra).
  replace (RInt _ 0 x / sqrt (2 * PI))
    with (scal (/ sqrt (2 * PI)) (RInt (fun s => exp (- (s ^ 2 / 2))) 0 x))
    by (unfold scal; simpl; unfold mult; simpl; field; lra).
  rewrite <- (RInt_scal (V := R_CompleteNormedModule)).
  - apply RInt_ext. intros s _. unfold scal; simpl; unfold mult; simpl. unfold density.
    replace (- s ^ 2 / (2 * 1 ^ 2)) with (- (s * (s * 1) / 2)) by (simpl; field). field. lra.
  - apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros z _.
    apply (ex_derive_continuous (V := R_NormedModule)). auto_derive. trivial.
Qed.

(** ** The arctangent *)

Definition arctan_term (x : R) (j : nat) : R := x ^ (2 * j + 1) / (1 + 2 * INR j).

Lemma is_derive_arctan_term j t : is_derive (fun x => arctan_term x j) t (t ^ (2 * j)).
Proof.
  unfold arctan_term, Rdiv. pose proof (odd_pos j). rewrite Nat.add_1_r.
  evar_last; [apply is_derive_monomial|].
  rewrite S_INR, mult_INR. change (INR 2) with 2. field. lra.
Qed.

Lemma arctan_rest n x : 0 <= x ->
  Rabs (atan x - series (fun j => sign j * arctan_term x j) n) <= arctan_term x n.
Proof.
  intros Hx.
  assert (D : forall m t, is_derive (fun x => series (fun j => sign j * arctan_term x j) m) t
                (series (fun j => sign j * t ^ (2 * j)) m)).
  { induction m as [|m IHm]; intros t; [simpl; apply is_derive_constant|].
    apply (is_derive_plus (fun x => series (fun j => sign j * arctan_term x j) m)
      (fun x => sign m * arctan_term x m)); [apply IHm|].
    apply (is_derive_scal (fun x => arctan_term x m)), is_derive_arctan_term. }
  assert (Z : forall m, arctan_term 0 m = 0).
  { intros m. unfold arctan_term. rewrite pow_i by lia. unfold Rdiv. ring. }
  assert (S0 : forall m, series (fun j => sign j * arctan_term 0 j) m = 0).
  { induction m as [|m IHm]; [reflexivity|]. simpl. rewrite IHm, Z. ring. }
  (* the rest of the geometric series *)
  assert (G : forall m t, / (1 + t²) - series (fun j => sign j * t ^ (2 * j)) m
                = sign m * t ^ (2 * m) / (1 + t²)).
  { intros m t. assert (0 < 1 + t²) by (pose proof (Rle_0_sqr t); lra).
    induction m as [|m IHm]; [simpl; unfold sign; simpl; field; lra|].
    rewrite sign_S. replace (2 * S m)%nat with (2 + 2 * m)%nat by lia.
    rewrite pow_add. set (p := t ^ (2 * m)) in *.
    change (series (fun j => sign j * t ^ (2 * j)) (S m))
      with (series (fun j => sign j * t ^ (2 * j)) m + sign m * p).
    replace (/ (1 + t²) - (series (fun j => sign j * t ^ (2 * j)) m + sign m * p))
      with (/ (1 + t²) - series (fun j => sign j * t ^ (2 * j)) m - sign m * p) by ring.
    rewrite IHm. unfold Rsqr in *. simpl (t ^ 2). field. lra. }
  pose proof (dominated (fun x => atan x - series (fun j => sign j * arctan_term x j) n)
    (fun x => arctan_term x n)
    (fun t => / (1 + t²) - series (fun j => sign j * t ^ (2 * j)) n)
    (fun t => t ^ (2 * n)) x Hx) as H.
  cbv beta in H. rewrite S0, Z, atan_0, Rminus_eq_0, !Rminus_0_r in H. apply H.
  - intros t _. apply (is_derive_minus atan); [apply is_derive_atan|apply D].
  - intros t _. apply is_derive_arctan_term.
  - intros t Ht. rewrite G. assert (1 <= 1 + t²) by (pose proof (Rle_0_sqr t); lra).
    unfold Rdiv. rewrite !Rabs_mult, Rabs_inv, (Rabs_right (1 + t²)) by lra.
    assert (Rabs (sign n) = 1) as ->.
    { unfold sign. destruct Nat.odd; [rewrite Rabs_left|apply Rabs_R1]; lra. }
    rewrite Rabs_right by (apply Rle_ge, pow_le; lra). rewrite Rmult_1_l.
    rewrite <- (Rmult_1_r (t ^ (2 * n))) at 2. apply Rmult_le_compat_l; [apply pow_le; lra|].
    rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
Qed.

(** ** Numbers *)

Lemma ln_2 : 128 / 185 <= ln 2 <= 128 / 184.
Proof.
  split.
  - rewrite <- (ln_exp (128 / 185)). apply Rcomplements.ln_le; [apply exp_pos|].
    pose proof (exp_rest 6 (128 / 185) ltac:(lra)) as H. apply Rabs_le_inv in H.
    unfold power_term, sign in H. simpl in H. rewrite exp_Ropp in H.
    pose proof (exp_pos (128 / 185)) as P.
    assert (1 / 2 <= / exp (128 / 185)) by lra.
    apply Rmult_le_reg_r with (/ exp (128 / 185)); [now apply Rinv_0_lt_compat|].
    rewrite Rinv_r by lra. lra.
  - rewrite <- (ln_exp (128 / 184)). apply Rcomplements.ln_le; [lra|].
    apply Rle_trans with (2 := exp_part 6 (128 / 184) ltac:(lra)).
    unfold power_term. simpl. lra.
Qed.

Lemma pi_range : 3 < PI <= 31417 / 10000.
Proof.
  split; [pose proof PI2_3_2; lra|].
  pose proof Machin_4_5_239 as M.
  pose proof (arctan_rest 2 (/ 5) ltac:(lra)) as A. pose proof (arctan_rest 2 (/ 239) ltac:(lra)) as B.
  apply Rabs_le_inv in A, B. unfold arctan_term, sign in A, B. simpl in A, B. lra.
Qed.

Lemma root_range : 2 < sqrt (2 * PI) <= 2 * (12534 / 10000).
Proof.
  pose proof pi_range. split.
  - apply Rle_lt_trans with (sqrt (2 * 2)); [rewrite sqrt_square; lra|apply sqrt_lt_1; lra].
  - set (c := 2 * (12534 / 10000)). apply Rle_trans with (sqrt (c * c)).
    + apply sqrt_le_1; unfold c; lra.
    + rewrite sqrt_square; unfold c; lra.
Qed.
