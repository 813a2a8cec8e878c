(** Proofs about the clip, the grid and the scale of the noise, in double precision. *)

From Coq Require Import Reals List ZArith Lra Lia.
From Flocq Require Import Core Relative Mult_error.
From ReleasePath Require Import Constants Floats.
Import ListNotations.
Open Scope R_scope.

Local Notation u := (/ 2 ^ 53).

#[export] Instance prec_gt_0 : Prec_gt_0 53. Proof. easy. Qed.
#[export] Instance valid : Valid_exp binary64 := FLT_exp_valid (-1074) 53.

Lemma bpow_pow e : (0 <= e)%Z -> bpow radix2 e = 2 ^ Z.to_nat e.
Proof. intros H. rewrite <- (Z2Nat.id e) at 1 by assumption. now rewrite bpow_powerRZ, <- pow_powerRZ. Qed.

Lemma bpow_format e : (-1074 <= e)%Z -> generic_format radix2 binary64 (bpow radix2 e).
Proof. intros H. apply generic_format_FLT, FLT_format_bpow; easy. Qed.

Lemma fl_0 : fl 0 = 0. Proof. apply round_0, valid_rnd_N. Qed.

Lemma fl_le x y : x <= y -> fl x <= fl y.
Proof. apply round_le; [apply valid|apply valid_rnd_N]. Qed.

Lemma fl_id x : generic_format radix2 binary64 x -> fl x = x.
Proof. apply round_generic, valid_rnd_N. Qed.

Lemma fl_format x : generic_format radix2 binary64 (fl x).
Proof. apply generic_format_round; [apply valid|apply valid_rnd_N]. Qed.

Lemma fl_pos x : 0 <= x -> 0 <= fl x.
Proof. intros H. rewrite <- fl_0. now apply fl_le. Qed.

(** Each operation is off by half a place, where nothing is as small as 2^-1022. *)
Lemma fl_err x : bpow radix2 (-1022) <= Rabs x ->
  Rabs x * (1 - u) <= Rabs (fl x) <= Rabs x * (1 + u).
Proof.
  intros H. destruct (relative_error_N_FLT_ex radix2 (-1074) 53 eq_refl
    (fun x => negb (Z.even x)) x H) as (e & He & E).
  change (round radix2 binary64 (Znearest _) x) with (fl x) in E. rewrite E, Rabs_mult.
  assert (B : Rabs e <= u).
  { apply Rle_trans with (1 := He). simpl bpow. simpl. lra. }
  apply Rabs_le_inv in B. rewrite (Rabs_right (1 + e)) by lra.
  pose proof (Rabs_pos x). split; apply Rmult_le_compat_l; lra.
Qed.

Lemma fl_err_pos x : bpow radix2 (-1022) <= x -> x * (1 - u) <= fl x <= x * (1 + u).
Proof.
  intros H. assert (0 < x) by (apply Rlt_le_trans with (2 := H), bpow_gt_0).
  pose proof (fl_err x). rewrite (Rabs_right x), (Rabs_right (fl x)) in H1; auto.
  - apply Rle_ge, fl_pos. lra.
  - lra.
Qed.

(** ** Rows of integers *)

Lemma squares_cons x row : squares (x :: row) = (x * x + squares row)%Z.
Proof. reflexivity. Qed.

Lemma squares_nonneg row : (0 <= squares row)%Z.
Proof. induction row as [|x row IH]; [easy|]. rewrite squares_cons. nia. Qed.

(** Truncation shortens. *)
Lemma trunc_le y : Rabs (IZR (Ztrunc y)) <= Rabs y.
Proof.
  unfold Ztrunc. destruct (Rlt_bool_spec y 0) as [H|H].
  - pose proof (Zceil_ub y). assert (IZR (Zceil y) <= 0) by (apply IZR_le, Zceil_glb; simpl; lra).
    rewrite !Rabs_left1; lra.
  - pose proof (Zfloor_lb y). assert (0 <= IZR (Zfloor y)) by (apply IZR_le, Zfloor_lub; simpl; lra).
    rewrite !Rabs_right; lra.
Qed.

(** A row whose entries shrink by a factor, the rounding of the product included. *)
Lemma squares_scaled row f : 0 <= f -> bpow radix2 (-1022) <= f \/ f = 0 ->
  IZR (squares (map (fun x => Ztrunc (fl (IZR x * f))) row))
  <= (f * (1 + u)) ^ 2 * IZR (squares row).
Proof.
  intros F N. induction row as [|x row IH]; [unfold squares; simpl; lra|].
  simpl map. rewrite !squares_cons, !plus_IZR, Rmult_plus_distr_l. apply Rplus_le_compat; [|assumption].
  set (y := Ztrunc _). rewrite !mult_IZR.
  assert (B : Rabs (IZR y) <= Rabs (IZR x) * (f * (1 + u))).
  { apply Rle_trans with (1 := trunc_le _). rewrite <- Rmult_assoc.
    rewrite <- (Rabs_right f) at 2 by lra. rewrite <- Rabs_mult.
    destruct (Z.eq_dec x 0) as [->|Hx].
    - rewrite !Rmult_0_l, fl_0, Rabs_R0. lra.
    - destruct N as [N| ->]; [|rewrite !Rmult_0_r, fl_0, Rabs_R0; lra].
      apply fl_err. rewrite Rabs_mult, (Rabs_right f) by lra.
      assert (1 <= Rabs (IZR x)) by (rewrite <- abs_IZR; apply IZR_le; lia).
      pose proof (bpow_gt_0 radix2 (-1022)). nra. }
  replace (IZR y * IZR y) with (Rabs (IZR y) * Rabs (IZR y))
    by (rewrite <- Rabs_mult; apply Rabs_right; nra).
  replace (IZR x * IZR x) with (Rabs (IZR x) * Rabs (IZR x))
    by (rewrite <- Rabs_mult; apply Rabs_right; nra).
  pose proof (Rabs_pos (IZR y)). pose proof (Rabs_pos (IZR x)).
  replace ((f * (1 + u)) ^ 2 * (Rabs (IZR x) * Rabs (IZR x)))
    with ((Rabs (IZR x) * (f * (1 + u))) * (Rabs (IZR x) * (f * (1 + u)))) by ring.
  apply Rmult_le_compat; assumption.
Qed.

Lemma tiny e : (-1022 <= e)%Z -> bpow radix2 (-1022) <= bpow radix2 e.
Proof. apply bpow_le. Qed.

Theorem clip_is_short row limit :
  bpow radix2 (-500) <= limit <= bpow radix2 500 -> IZR (squares row) <= bpow radix2 100 ->
  IZR (squares (clip row limit)) <= limit ^ 2.
Proof.
  intros (L0 & L1) HN. unfold clip.
  assert (P : 0 < bpow radix2 (-500)) by apply bpow_gt_0.
  destruct (Z.eq_dec (squares row) 0) as [Z|NZ].
  { rewrite Z, fl_0. destruct Rle_dec as [_|H].
    - rewrite Z. apply pow2_ge_0.
    - exfalso. apply H. apply fl_pos, Rmult_le_pos; [apply fl_pos, Rmult_le_pos; lra|].
      unfold over. lra. }
  assert (N1 : 1 <= IZR (squares row)) by (apply IZR_le; pose proof (squares_nonneg row); lia).
  set (n := IZR (squares row)) in *.
  assert (B1 : bpow radix2 (-1022) <= 1 / 4).
  { replace (1 / 4) with (bpow radix2 (-2)) by (simpl; lra). apply bpow_le. lia. }
  destruct (fl_err_pos n) as (En0 & En1); [lra|]. set (m := fl n) in *.
  destruct Rle_dec as [H|_].
  - assert (Q : bpow radix2 (-1022) * 4 <= limit * limit).
    { apply Rle_trans with (bpow radix2 (-500) * bpow radix2 (-500)).
      - replace 4 with (bpow radix2 2) by (simpl; lra).
        rewrite <- !bpow_plus. apply bpow_le. lia.
      - apply Rmult_le_compat; lra. }
    pose proof (bpow_gt_0 radix2 (-1022)).
    destruct (fl_err_pos (limit * limit)) as (E0 & E1); [lra|].
    set (l2 := fl (limit * limit)) in *.
    assert (Ho : 8 * u <= over <= 1 / 2) by (unfold over; lra).
    assert (Qo : l2 / 2 <= l2 * (1 - over) <= l2 * (1 - 8 * u))
      by (split; unfold Rdiv; apply Rmult_le_compat_l; lra).
    destruct (fl_err_pos (l2 * (1 - over))) as (_ & E2); [lra|].
    fold n. simpl (limit ^ 2). rewrite Rmult_1_r. lra.
  - set (s := fl (sqrt m)).
    assert (M : 1 / 2 <= m) by lra.
    assert (S0 : 1 / 2 <= sqrt m).
    { rewrite <- (sqrt_square (1 / 2)) by lra. apply sqrt_le_1; lra. }
    destruct (fl_err_pos (sqrt m)) as (Es0 & Es1); [lra|]. fold s in Es0, Es1.
    assert (SN : sqrt n * (1 - u) <= sqrt m).
    { rewrite <- (sqrt_square (1 - u)) by lra. rewrite <- sqrt_mult by lra.
      apply sqrt_le_1; nra. }
    assert (S1 : 1 <= sqrt n) by (rewrite <- sqrt_1; apply sqrt_le_1; lra).
    assert (S2 : sqrt n * sqrt n = n) by (apply sqrt_sqrt; lra).
    assert (S3 : s <= bpow radix2 103).
    { assert (sqrt m <= 1 + m).
      { rewrite <- (sqrt_square (1 + m)) by lra. apply sqrt_le_1; nra. }
      replace 103%Z with (3 + 100)%Z by easy. rewrite bpow_plus. simpl (bpow radix2 3). lra. }
    assert (Q0 : bpow radix2 (-603) <= limit / s).
    { apply Rmult_le_reg_r with s; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
      rewrite Rmult_1_r. apply Rle_trans with (2 := L0).
      replace (-500)%Z with (-603 + 103)%Z by easy. rewrite bpow_plus.
      apply Rmult_le_compat_l; [apply bpow_ge_0|assumption]. }
    assert (T : bpow radix2 (-1022) * 4 <= bpow radix2 (-603)).
    { replace 4 with (bpow radix2 2) by (simpl; lra). rewrite <- bpow_plus. apply bpow_le. lia. }
    pose proof (bpow_gt_0 radix2 (-1022)).
    destruct (fl_err_pos (limit / s)) as (Eq0 & Eq1); [lra|]. set (q := fl (limit / s)) in *.
    assert (Hm : 32 * u <= margin <= 1 / 2) by (unfold margin; lra).
    assert (Qm : q / 2 <= q * (1 - margin) <= q * (1 - 32 * u))
      by (split; unfold Rdiv; apply Rmult_le_compat_l; lra).
    destruct (fl_err_pos (q * (1 - margin))) as (Ef0 & Ef1); [lra|].
    set (f := fl (q * (1 - margin))) in *.
    assert (F1 : f * (1 + u) * (sqrt n * (1 - 2 * u)) <= limit * (1 - 28 * u)).
    { assert (limit = limit / s * s) by (field; lra).
      apply Rle_trans with (limit / s * (1 - 28 * u) * s); [|rewrite H0 at 2; right; ring].
      apply Rmult_le_compat; lra. }
    assert (F2 : 0 < Rmin 1 f <= f).
    { split; [apply Rmin_glb_lt; lra|apply Rmin_r]. }
    apply Rle_trans with (1 := squares_scaled row (Rmin 1 f) ltac:(lra)
      ltac:(left; apply Rmin_glb; lra)).
    fold n. rewrite <- S2.
    replace ((Rmin 1 f * (1 + u)) ^ 2 * (sqrt n * sqrt n))
      with ((Rmin 1 f * (1 + u) * sqrt n) ^ 2) by ring.
    apply pow_incr. split; [apply Rmult_le_pos; [apply Rmult_le_pos|]; lra|].
    apply Rle_trans with (f * (1 + u) * sqrt n).
    + apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra.
    + apply Rmult_le_reg_r with (1 - 2 * u); [lra|]. lra.
Qed.

(** The factor of Lloyd's iterations: times the residual, no longer than the limit. *)
Theorem factor_is_short row limit :
  bpow radix2 (-500) <= limit <= bpow radix2 500 -> IZR (squares row) <= bpow radix2 100 ->
  IZR (squares (map (Z.mul (clip_factor (squares row) limit)) row))
  <= (limit * IZR (2 ^ WEIGHT_BITS)) ^ 2.
Proof.
  intros (L0 & L1) HN. pose proof (bpow_gt_0 radix2 (-500)) as P.
  assert (E : forall w v, squares (map (Z.mul w) v) = (w * w * squares v)%Z).
  { intros w v. induction v as [|x v IH]; [unfold squares; simpl; lia|].
    simpl map. rewrite !squares_cons, IH. ring. }
  rewrite E, !mult_IZR. replace (IZR (2 ^ WEIGHT_BITS)) with (2 ^ 10) by (simpl; lra).
  destruct (Z.eq_dec (squares row) 0) as [Z|NZ].
  { rewrite Z, Rmult_0_r. apply pow2_ge_0. }
  assert (N1 : 1 <= IZR (squares row)) by (apply IZR_le; pose proof (squares_nonneg row); lia).
  unfold clip_factor. rewrite Rmax_left by assumption. set (n := IZR (squares row)) in *.
  assert (S1 : 1 <= sqrt n) by (rewrite <- sqrt_1; apply sqrt_le_1; lra).
  assert (S2 : sqrt n * sqrt n = n) by (apply sqrt_sqrt; lra).
  assert (B1 : bpow radix2 (-1022) <= 1 / 4).
  { replace (1 / 4) with (bpow radix2 (-2)) by (simpl; lra). apply bpow_le. lia. }
  destruct (fl_err_pos (sqrt n)) as (Es0 & Es1); [lra|]. set (s := fl (sqrt n)) in *.
  assert (T : bpow radix2 (-1022) * 4 <= bpow radix2 (-500)).
  { replace 4 with (bpow radix2 2) by (simpl; lra). rewrite <- bpow_plus. apply bpow_le. lia. }
  assert (Hm : 32 * u <= factor_margin <= 1 / 2) by (unfold factor_margin; lra).
  assert (Lm : limit / 2 <= limit * (1 - factor_margin) <= limit * (1 - 32 * u))
    by (split; unfold Rdiv; apply Rmult_le_compat_l; lra).
  destruct (fl_err_pos (limit * (1 - factor_margin))) as (Eb0 & Eb1); [lra|].
  set (b := fl (limit * (1 - factor_margin))) in *.
  assert (S3 : s <= bpow radix2 103).
  { assert (sqrt n <= 1 + n).
    { rewrite <- (sqrt_square (1 + n)) by lra. apply sqrt_le_1; nra. }
    replace 103%Z with (3 + 100)%Z by easy. rewrite bpow_plus. simpl (bpow radix2 3). lra. }
  assert (Q0 : bpow radix2 (-605) <= b / s).
  { apply Rmult_le_reg_r with s; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
    rewrite Rmult_1_r. apply Rle_trans with (limit / 4); [|lra].
    apply Rle_trans with (bpow radix2 (-502)).
    - replace (-502)%Z with (-605 + 103)%Z by easy. rewrite bpow_plus.
      apply Rmult_le_compat_l; [apply bpow_ge_0|assumption].
    - replace (-502)%Z with (-500 + -2)%Z by easy. rewrite bpow_plus. simpl (bpow radix2 (-2)). lra. }
  destruct (fl_err_pos (b / s)) as (Eq0 & Eq1).
  { apply Rle_trans with (2 := Q0). apply bpow_le. lia. }
  set (q := fl (b / s)) in *. pose proof (bpow_gt_0 radix2 (-605)).
  set (m := Rmin 1 q).
  assert (M : 0 <= m <= q) by (split; [apply Rmin_glb; nra|apply Rmin_r]).
  assert (Fm : fl (m * bpow radix2 10) = m * bpow radix2 10).
  { apply fl_id. unfold m. destruct (Rle_dec 1 q) as [H1|H1].
    - rewrite Rmin_left by assumption. rewrite Rmult_1_l. now apply bpow_format.
    - rewrite Rmin_right by lra. apply mult_bpow_exact_FLT; [apply fl_format|].
      assert (-606 < mag radix2 q)%Z; [|lia]. apply mag_gt_bpow.
      rewrite Rabs_right by nra. apply Rle_trans with (b / s * (1 - u)); [|assumption].
      replace (-606)%Z with (-605 + -1)%Z by easy. rewrite bpow_plus. simpl (bpow radix2 (-1)). nra. }
  unfold WEIGHT_BITS. rewrite Fm. replace (bpow radix2 10) with (2 ^ 10) by (simpl; lra).
  set (f := Zfloor (m * 2 ^ 10)). assert (F0 : 0 <= IZR f) by (apply IZR_le, Zfloor_lub; simpl; lra).
  assert (F1 : IZR f <= m * 2 ^ 10) by apply Zfloor_lb.
  assert (F2 : q * s <= limit * (1 - 28 * u)).
  { apply Rle_trans with (b / s * (1 + u) * s); [apply Rmult_le_compat_r; lra|].
    replace (b / s * (1 + u) * s) with (b * (1 + u)) by (field; lra). lra. }
  assert (F3 : q * sqrt n <= limit).
  { apply Rmult_le_reg_r with (1 - u); [lra|].
    apply Rle_trans with (q * s); [rewrite Rmult_assoc; apply Rmult_le_compat_l; lra|lra]. }
  rewrite <- S2. replace (IZR f * IZR f * (sqrt n * sqrt n)) with ((IZR f * sqrt n) ^ 2) by ring.
  apply pow_incr. split; [apply Rmult_le_pos; lra|].
  apply Rle_trans with (q * 2 ^ 10 * sqrt n); [apply Rmult_le_compat_r; lra|]. lra.
Qed.

(** ** The grid *)

Lemma format_ge x : 0 < x -> generic_format radix2 binary64 x -> bpow radix2 (-1074) <= x.
Proof. apply generic_format_ge_bpow. intros e. unfold FLT_exp. lia. Qed.

Lemma fl_abs_le x y : generic_format radix2 binary64 y -> Rabs x <= y -> Rabs (fl x) <= y.
Proof.
  intros F H. apply Rabs_le_inv in H. destruct H as (H1 & H2). apply fl_le in H1, H2.
  rewrite (fl_id (- y)) in H1 by (now apply generic_format_opp). rewrite (fl_id y F) in H2.
  apply Rabs_le. lra.
Qed.

Section Grid.
Variables (radius : R) (e : Z).
Hypothesis Hr : is_float radius.
Hypothesis He : exponent_of radius e.
Let unit := unit_of e.
Let k := (24 - Z.max e (-980))%Z.

Lemma radius_pos : 0 < radius.
Proof. destruct He as (H & _). pose proof (bpow_gt_0 radix2 (e - 1)). lra. Qed.

Lemma e_range : (-1074 <= e <= 1024)%Z.
Proof.
  pose proof radius_pos. destruct Hr as (F & B). destruct He as (H1 & H2).
  pose proof (format_ge radius ltac:(assumption) F). split.
  - apply (le_bpow radix2). lra.
  - unfold finite in B. rewrite Rabs_right in B by lra.
    assert (e - 1 < 1024)%Z; [apply (lt_bpow radix2); lra|lia].
Qed.

Lemma inverse_unit : fl (1 / unit) = bpow radix2 k.
Proof.
  pose proof e_range. unfold unit, unit_of, Rdiv. rewrite Rmult_1_l, <- bpow_opp.
  replace (- (Z.max e least_exponent - grid_bits))%Z with k by (unfold k, least_exponent, grid_bits; lia).
  apply fl_id, bpow_format. unfold k. lia.
Qed.

Lemma radius_in_steps : fl (radius / unit) = radius * bpow radix2 k.
Proof.
  pose proof e_range. unfold unit, unit_of, Rdiv. rewrite <- bpow_opp.
  replace (- (Z.max e least_exponent - grid_bits))%Z with k by (unfold k, least_exponent, grid_bits; lia).
  apply fl_id. apply mult_bpow_exact_FLT; [apply Hr|].
  pose proof radius_pos. destruct He as (H1 & _), Hr as (F & _).
  assert (e - 1 < mag radix2 radius)%Z by (apply mag_gt_bpow; rewrite Rabs_right; lra).
  assert (-1074 < mag radix2 radius)%Z.
  { apply mag_gt_bpow. rewrite Rabs_right by lra. now apply format_ge. }
  unfold k. lia.
Qed.

Lemma steps_le : radius * bpow radix2 k <= bpow radix2 24.
Proof.
  destruct He as (_ & H). apply Rle_trans with (bpow radix2 e * bpow radix2 k).
  - apply Rmult_le_compat_r; [apply bpow_ge_0|assumption].
  - rewrite <- bpow_plus. apply bpow_le. unfold k. lia.
Qed.

Lemma steps_eq : steps_of unit radius = radius / unit.
Proof.
  unfold steps_of. rewrite radius_in_steps, Rmin_left.
  - unfold unit, unit_of, Rdiv. rewrite <- bpow_opp. do 2 f_equal.
    unfold k, least_exponent, grid_bits. lia.
  - apply steps_le.
Qed.

Lemma steps_ge : bpow radix2 (-500) <= steps_of unit radius.
Proof.
  pose proof radius_pos. pose proof e_range. destruct He as (H1 & _), Hr as (F & _).
  unfold steps_of. rewrite radius_in_steps, Rmin_left by apply steps_le.
  destruct (Z_le_gt_dec (-980) e) as [L|L].
  - apply Rle_trans with (bpow radix2 (e - 1) * bpow radix2 k).
    + rewrite <- bpow_plus. apply bpow_le. unfold k. lia.
    + apply Rmult_le_compat_r; [apply bpow_ge_0|lra].
  - apply Rle_trans with (bpow radix2 (-1074) * bpow radix2 k).
    + rewrite <- bpow_plus. apply bpow_le. unfold k. lia.
    + apply Rmult_le_compat_r; [apply bpow_ge_0|now apply format_ge].
Qed.

Lemma largest_ge row x : In x row -> Rabs x <= largest row.
Proof.
  unfold largest. induction row as [|y row IH]; [easy|]. simpl. intros [->|H].
  - apply Rmax_l.
  - apply Rle_trans with (2 := Rmax_r _ _). auto.
Qed.

Lemma shrunk_le row : List.Forall (fun x => Rabs x <= radius) (shrunk radius row).
Proof.
  pose proof radius_pos. unfold shrunk. apply Forall_forall.
  destruct Rlt_dec as [L|L]; intros x Hx.
  - apply in_map_iff in Hx. destruct Hx as (y & <- & Hy). apply largest_ge in Hy.
    assert (Q : Rabs (fl (y / largest row)) <= bpow radix2 0).
    { apply fl_abs_le; [now apply bpow_format|]. unfold Rdiv. rewrite Rabs_mult, Rabs_inv, (Rabs_right (largest row)) by lra.
      simpl. apply Rmult_le_reg_r with (largest row); [lra|].
      rewrite Rmult_assoc, Rinv_l; lra. }
    apply fl_abs_le; [apply Hr|]. rewrite Rabs_mult, (Rabs_right radius) by lra.
    simpl in Q. nra.
  - apply largest_ge in Hx. lra.
Qed.

(** No entry is longer than LIMIT, before the clip. *)
Lemma entries_le row : List.Forall (fun x => (Z.abs x <= LIMIT)%Z) (in_steps unit radius row).
Proof.
  unfold in_steps. rewrite inverse_unit. apply Forall_map.
  apply Forall_impl with (2 := shrunk_le row). intros x Hx.
  apply le_IZR. rewrite abs_IZR. apply Rle_trans with (1 := trunc_le _).
  apply (fl_abs_le _ (bpow radix2 24)); [now apply bpow_format|]. rewrite Rabs_mult, (Rabs_right (bpow radix2 k)).
  - apply Rle_trans with (2 := steps_le). apply Rmult_le_compat_r; [apply bpow_ge_0|assumption].
  - apply Rle_ge, bpow_ge_0.
Qed.

Lemma squares_le row limit : List.Forall (fun x => (Z.abs x <= limit)%Z) row ->
  (squares row <= Z.of_nat (length row) * limit ^ 2)%Z.
Proof.
  intros H. induction H as [|x row Hx _ IH]; [easy|].
  rewrite squares_cons. simpl length. rewrite Nat2Z.inj_succ. nia.
Qed.

Lemma squares_fit row : (Z.of_nat (length row) <= MOST_COLUMNS)%Z ->
  (squares (in_steps unit radius row) <= 2 ^ 62)%Z.
Proof.
  intros H. apply Z.le_trans with (1 := squares_le _ _ (entries_le row)).
  replace (length (in_steps unit radius row)) with (length row).
  - unfold MOST_COLUMNS, LIMIT in *. nia.
  - unfold in_steps, shrunk. rewrite map_length. destruct Rlt_dec; [now rewrite map_length|easy].
Qed.

Theorem quantized_is_short row : (Z.of_nat (length row) <= MOST_COLUMNS)%Z ->
  IZR (squares (quantize unit radius row)) <= (radius / unit) ^ 2.
Proof.
  intros H. rewrite <- steps_eq. apply clip_is_short.
  - split; [apply steps_ge|]. unfold steps_of. apply Rle_trans with (1 := Rmin_r _ _).
    apply (bpow_le radix2 24). lia.
  - apply squares_fit, IZR_le in H. apply Rle_trans with (1 := H).
    apply (bpow_le radix2 62). lia.
Qed.
End Grid.

(** ** The scale of the noise *)

Lemma twice_exact x : generic_format radix2 binary64 x -> fl (2 * x) = 2 * x.
Proof.
  intros F. apply fl_id. apply FLT_format_generic in F; [|easy]. destruct F as [[m ex] E Hm Hx].
  apply generic_format_FLT. exists (Float radix2 m (ex + 1)); simpl in *; [|assumption|lia].
  rewrite E. unfold F2R. cbn [Fnum Fexp]. rewrite bpow_plus.
  replace (bpow radix2 1) with 2 by reflexivity. ring.
Qed.

Lemma next_ge y : 0 <= y -> y + 2 * ulp radix2 binary64 y <= round_up y.
Proof.
  intros H. unfold round_up, next. pose proof (ulp_ge_0 radix2 binary64 y).
  rewrite (succ_eq_pos _ _ y H), succ_eq_pos by lra.
  assert (ulp radix2 binary64 y <= ulp radix2 binary64 (y + ulp radix2 binary64 y)).
  { apply ulp_le_pos; try lra; [apply valid|apply FLT_exp_monotone]. }
  lra.
Qed.

Theorem sigma_is_enough sensitivity rho :
  0 < sensitivity -> 0 < rho -> generic_format radix2 binary64 rho ->
  sensitivity / sqrt (2 * rho) <= sigma_of sensitivity rho.
Proof.
  intros Ha Hr F. unfold sigma_of. rewrite twice_exact by assumption.
  pose proof (format_ge rho Hr F) as G. set (s := sqrt (2 * rho)).
  assert (S0 : bpow radix2 (-537) <= s).
  { rewrite <- (sqrt_square (bpow radix2 (-537))) by apply bpow_ge_0. apply sqrt_le_1.
    - rewrite <- bpow_plus. apply bpow_ge_0.
    - lra.
    - rewrite <- bpow_plus. simpl (_ + _)%Z. pose proof (bpow_ge_0 radix2 (-1074)). lra. }
  pose proof (bpow_gt_0 radix2 (-537)).
  destruct (fl_err_pos s) as (E0 & E1).
  { apply Rle_trans with (2 := S0). apply bpow_le. lia. }
  set (r := fl s) in *. set (q := sensitivity / r).
  assert (Q : 0 <= q) by (left; apply Rdiv_lt_0_compat; lra).
  apply Rle_trans with (2 := next_ge (fl q) (fl_pos q Q)). set (y := fl q).
  set (p := ulp radix2 binary64 y).
  assert (H1 : q <= y + / 2 * p).
  { pose proof (error_le_half_ulp_round radix2 binary64 (fun x => negb (Z.even x)) q) as B.
    change (round radix2 binary64 (Znearest _) q) with y in B. fold p in B.
    apply Rabs_le_inv in B. lra. }
  assert (H2 : y * u <= p).
  { pose proof (ulp_FLT_gt radix2 (-1074) 53 y) as B. fold p in B.
    rewrite Rabs_right in B by (apply Rle_ge, fl_pos, Q). simpl (bpow radix2 (- (53))) in B. lra. }
  assert (H3 : sensitivity / s <= q * (1 + u)).
  { unfold q. apply Rmult_le_reg_r with (s * r); [nra|].
    replace (sensitivity / s * (s * r)) with (sensitivity * r) by (field; lra).
    replace (sensitivity / r * (1 + u) * (s * r)) with (sensitivity * (s * (1 + u))) by (field; lra).
    apply Rmult_le_compat_l; lra. }
  assert (0 <= p) by apply ulp_ge_0. nra.
Qed.
