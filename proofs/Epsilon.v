(** The epsilon that the program computes is never too small. *)

From Coq Require Import Reals List ZArith Lra Lia.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From ReleasePath Require Import Constants Privacy Laws Floats Clip.
Import ListNotations.
Open Scope R_scope.

Local Notation u := (/ 2 ^ 53).

(** ** Sums, rounded up *)

Definition whole_steps (x : R) : Prop := exists k, x = IZR k * bpow radix2 (-1074).

Lemma format_steps x : generic_format radix2 binary64 x -> whole_steps x.
Proof.
  intros F. apply FLT_format_generic in F; [|easy]. destruct F as [[m e] E _ He]. simpl in He.
  exists (m * 2 ^ (e + 1074))%Z. rewrite E. unfold F2R. cbn [Fnum Fexp].
  rewrite mult_IZR, (IZR_Zpower radix2) by lia. rewrite Rmult_assoc, <- bpow_plus. do 2 f_equal. lia.
Qed.

Lemma steps_sum l : List.Forall (generic_format radix2 binary64) l -> whole_steps (exact_sum l).
Proof.
  intros H. induction H as [|x l Hx _ (k & IH)]; [exists 0%Z; simpl; ring|].
  destruct (format_steps x Hx) as (j & E). exists (j + k)%Z.
  change (exact_sum (x :: l)) with (x + exact_sum l). rewrite E, IH, plus_IZR. ring.
Qed.

Lemma next_above x : x < next (fl x).
Proof.
  assert (N : fl x < next (fl x)).
  { unfold next. destruct (Req_dec (fl x) 0) as [->|N]; [|now apply succ_gt_id].
    rewrite succ_0, ulp_FLT_0 by easy. apply bpow_gt_0. }
  apply Rnot_le_lt. intros L. apply fl_le in L.
  rewrite (fl_id (next (fl x))) in L; [lra|]. apply generic_format_succ; [apply valid|apply fl_format].
Qed.

Theorem mu_is_enough rho : 0 < rho -> is_float rho -> 0 < mu_from_rho rho /\ 2 * rho < mu_from_rho rho ^ 2.
Proof.
  intros Hr (F & _). unfold mu_from_rho. rewrite twice_exact by assumption.
  pose proof (next_above (sqrt (2 * rho))) as N. assert (S : 0 < sqrt (2 * rho)) by (apply sqrt_lt_R0; lra).
  assert (S2 : sqrt (2 * rho) * sqrt (2 * rho) = 2 * rho) by (apply sqrt_sqrt; lra).
  set (mu := next _) in *. split; [lra|]. rewrite <- S2. simpl. nra.
Qed.

Theorem sum_up_above l : List.Forall (generic_format radix2 binary64) l -> exact_sum l <= sum_up l.
Proof.
  intros H. unfold sum_up. destruct Rlt_dec as [L|L]; [apply Rlt_le, next_above|].
  apply Rnot_lt_le. intros G. apply L.
  destruct (steps_sum l H) as (i & Ei). destruct (format_steps _ (fl_format (exact_sum l))) as (j & Ej).
  assert (K : 0 < IZR (i - j)).
  { rewrite minus_IZR. pose proof (bpow_gt_0 radix2 (-1074)).
    apply Rmult_lt_reg_r with (bpow radix2 (-1074)); [assumption|]. rewrite Rmult_0_l. lra. }
  apply lt_IZR in K. apply Rlt_le_trans with (bpow radix2 (-1074)); [apply bpow_gt_0|].
  rewrite <- (fl_id (bpow radix2 (-1074))) by (now apply bpow_format). apply fl_le.
  apply Rle_trans with (IZR (i - j) * bpow radix2 (-1074)).
  - rewrite <- (Rmult_1_l (bpow radix2 (-1074))) at 1.
    apply Rmult_le_compat_r; [apply bpow_ge_0|]. apply IZR_le. lia.
  - rewrite minus_IZR. lra.
Qed.

(** ** The terms *)

Lemma tiny_le e x : (-1022 <= e)%Z -> bpow radix2 e <= x -> bpow radix2 (-1022) <= x.
Proof. intros He. apply Rle_trans, bpow_le, He. Qed.

Lemma log_slope x : 0 < x -> x / (1 + x) <= ln (1 + x).
Proof.
  intros Hx. pose proof (ln_le_sub (/ (1 + x)) ltac:(apply Rinv_0_lt_compat; lra)) as H.
  rewrite ln_Rinv in H by lra.
  replace (x / (1 + x)) with (1 - / (1 + x)) by (field; lra). lra.
Qed.

(** The logarithm of a sum moves less than its argument, relatively. *)
Lemma log_moves x x' : 0 < x -> x * (1 - u) <= x' <= x * (1 + u) ->
  Rabs (ln (1 + x') - ln (1 + x)) <= 101 / 100 * u * ln (1 + x).
Proof.
  intros Hx (H0 & H1). pose proof (log_slope x Hx) as S. assert (X' : 0 < x') by lra.
  assert (A : x * (1 + / 2 ^ 52) / (1 + x) <= ln (1 + x) * (1 + / 2 ^ 52)).
  { replace (x * (1 + / 2 ^ 52) / (1 + x)) with (x / (1 + x) * (1 + / 2 ^ 52)) by (field; lra).
    apply Rmult_le_compat_r; lra. }
  apply Rabs_le. split.
  - assert (L : ln ((1 + x) / (1 + x')) <= (1 + x) / (1 + x') - 1)
      by (apply ln_le_sub, Rdiv_lt_0_compat; lra).
    rewrite ln_div in L by lra.
    assert (D : (1 + x) / (1 + x') - 1 <= 101 / 100 * u * (x / (1 + x))).
    { apply Rmult_le_reg_r with ((1 + x) * (1 + x')); [nra|].
      replace (((1 + x) / (1 + x') - 1) * ((1 + x) * (1 + x'))) with ((x - x') * (1 + x)) by (field; lra).
      replace (101 / 100 * u * (x / (1 + x)) * ((1 + x) * (1 + x')))
        with (101 / 100 * u * x * (1 + x')) by (field; lra).
      apply Rle_trans with (u * x * (1 + x)); [apply Rmult_le_compat_r; lra|].
      assert (1 + x <= 101 / 100 * (1 + x')) by lra. nra. }
    lra.
  - assert (L : ln ((1 + x') / (1 + x)) <= (1 + x') / (1 + x) - 1)
      by (apply ln_le_sub, Rdiv_lt_0_compat; lra).
    rewrite ln_div in L by lra.
    assert (D : (1 + x') / (1 + x) - 1 <= u * (x / (1 + x))).
    { replace ((1 + x') / (1 + x) - 1) with ((x' - x) / (1 + x)) by (field; lra).
      replace (u * (x / (1 + x))) with (u * x / (1 + x)) by (field; lra).
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|lra]. }
    assert (0 <= ln (1 + x)) by (apply Rle_trans with (2 := S); left; apply Rdiv_lt_0_compat; lra).
    lra.
Qed.

(** Relative errors: of a quotient of something that is close to c. *)
Lemma quotient_close c c' b k : 0 < c -> 0 < b -> 0 <= k <= 20 * u ->
  c * (1 - k) <= c' <= c * (1 + k) -> bpow radix2 (-1022) <= c' / b ->
  Rabs (fl (c' / b) - c / b) <= (k + 2 * u) * (c / b).
Proof.
  intros Hc Hb Hk H N. destruct (fl_err_pos (c' / b) N) as (E0 & E1).
  assert (B : 0 < / b) by (now apply Rinv_0_lt_compat).
  assert (Q0 : c / b * (1 - k) <= c' / b) by (unfold Rdiv; nra).
  assert (Q1 : c' / b <= c / b * (1 + k)) by (unfold Rdiv; nra).
  assert (0 < c / b) by (now apply Rdiv_lt_0_compat).
  set (y := c / b) in *. set (y' := c' / b) in *. apply Rabs_le. split.
  - assert (y * (1 - k) * (1 - u) <= y' * (1 - u)) by (apply Rmult_le_compat_r; lra).
    assert (y * (1 - k - 2 * u) <= y * ((1 - k) * (1 - u))); [|lra]. apply Rmult_le_compat_l; lra.
  - assert (y' * (1 + u) <= y * (1 + k) * (1 + u)) by (apply Rmult_le_compat_r; lra).
    assert (y * ((1 + k) * (1 + u)) <= y * (1 + k + 2 * u)); [|lra]. apply Rmult_le_compat_l; lra.
Qed.

Section Terms.
Variables (log log1p : R -> R) (rho delta b total : R).
Hypothesis Hlog : logarithms_are_close log log1p.
Hypothesis Hrho : is_float rho.
Hypothesis Rrho : bpow radix2 (-400) <= rho <= bpow radix2 400.
Hypothesis Hb : is_float b.
Hypothesis Rb : bpow radix2 (-400) <= b <= bpow radix2 400.
Hypothesis Hdelta : is_float delta.
Hypothesis Rdelta : 0 < delta < 1.

Lemma b_pos : 0 < b.
Proof. apply Rlt_le_trans with (2 := proj1 Rb). apply bpow_gt_0. Qed.

Lemma rho_pos : 0 < rho.
Proof. apply Rlt_le_trans with (2 := proj1 Rrho). apply bpow_gt_0. Qed.

Lemma first_term : Rabs (fl (rho * fl (1 + b)) - rho * (1 + b)) <= 3 * u * (rho * (1 + b)).
Proof.
  pose proof b_pos. pose proof rho_pos.
  destruct (fl_err_pos (1 + b)) as (A0 & A1).
  { apply (tiny_le 0); [easy|]. simpl. lra. }
  set (c := fl (1 + b)) in *.
  destruct (fl_err_pos (rho * c)) as (B0 & B1).
  { apply (tiny_le (-401)); [easy|].
    replace (-401)%Z with (-400 + -1)%Z by easy. rewrite bpow_plus.
    apply Rmult_le_compat; try apply bpow_ge_0; [apply Rrho|]. simpl. lra. }
  assert (rho * ((1 + b) * (1 - u)) <= rho * c) by (apply Rmult_le_compat_l; lra).
  assert (rho * c <= rho * ((1 + b) * (1 + u))) by (apply Rmult_le_compat_l; lra).
  set (y := rho * (1 + b)).
  assert (0 < y) by (apply Rmult_lt_0_compat; lra).
  replace (rho * ((1 + b) * (1 - u))) with (y * (1 - u)) in * by (unfold y; ring).
  replace (rho * ((1 + b) * (1 + u))) with (y * (1 + u)) in * by (unfold y; ring).
  apply Rabs_le. lra.
Qed.

Lemma inverse_b : bpow radix2 (-400) <= 1 / b <= bpow radix2 400.
Proof.
  pose proof b_pos. destruct Rb as (R0 & R1). unfold Rdiv. rewrite Rmult_1_l. split.
  - replace (-400)%Z with (- (400))%Z by easy.
    rewrite bpow_opp. now apply Rinv_le_contravar.
  - replace 400%Z with (- (-400))%Z by easy. rewrite bpow_opp.
    apply Rinv_le_contravar; [apply bpow_gt_0|assumption].
Qed.

Lemma second_term : Rabs (log1p (fl (1 / b)) - ln (1 + 1 / b)) <= 10 * u * ln (1 + 1 / b).
Proof.
  pose proof b_pos. destruct inverse_b as (I0 & I1).
  assert (X : 0 < 1 / b) by (apply Rdiv_lt_0_compat; lra). set (x := 1 / b) in *.
  destruct (fl_err_pos x) as (A0 & A1); [apply (tiny_le (-400)); easy|].
  set (x' := fl x) in *.
  assert (F : is_float x').
  { split; [apply fl_format|]. unfold finite. rewrite Rabs_right by lra.
    apply Rle_lt_trans with (bpow radix2 400 * 2); [lra|].
    replace 2 with (bpow radix2 1) by reflexivity. rewrite <- bpow_plus. apply bpow_lt. lia. }
  destruct Hlog as (_ & L). destruct (L x' F ltac:(lra)) as (_ & L1).
  replace (bpow radix2 (-50)) with (8 * u) in L1 by (simpl; lra).
  pose proof (log_moves x x' X (conj A0 A1)) as M.
  assert (0 < ln (1 + x)).
  { rewrite <- ln_1. apply ln_increasing; lra. }
  apply Rabs_le_inv in L1, M. apply Rabs_le. lra.
Qed.

Lemma delta_range : / 2 ^ 53 <= - ln delta.
Proof.
  destruct Hdelta as (F & _). destruct Rdelta as (D0 & D1).
  assert (G : delta <= pred radix2 binary64 1).
  { apply pred_ge_gt; auto; try typeclasses eauto. now apply (bpow_format 0). }
  replace 1 with (bpow radix2 0) in G by reflexivity.
  rewrite pred_bpow in G. simpl in G. pose proof (ln_le_sub delta D0). lra.
Qed.

Lemma third_term : Rabs (fl (- log delta / b) - - ln delta / b) <= 10 * u * (- ln delta / b).
Proof.
  pose proof b_pos. pose proof delta_range as D. destruct Hlog as (L & _).
  destruct (L delta Hdelta Rdelta) as (_ & L1).
  replace (bpow radix2 (-50)) with (8 * u) in L1 by (simpl; lra). apply Rabs_le_inv in L1.
  replace (10 * u) with (8 * u + 2 * u) by ring.
  apply quotient_close; try lra.
  apply (tiny_le (-54 + -400)); [easy|]. rewrite bpow_plus. destruct inverse_b as (I0 & _).
  unfold Rdiv in *. rewrite Rmult_1_l in I0.
  apply Rmult_le_compat; try apply bpow_ge_0; [simpl; lra|assumption].
Qed.

Lemma fourth_term : Rabs (fl (- log1p b / b) - - ln (1 + b) / b) <= 10 * u * (ln (1 + b) / b).
Proof.
  pose proof b_pos as B. destruct Hlog as (_ & L). destruct (L b Hb B) as (_ & L1).
  replace (bpow radix2 (-50)) with (8 * u) in L1 by (simpl; lra). apply Rabs_le_inv in L1.
  pose proof (log_slope b B) as S.
  assert (0 < b / (1 + b)) by (apply Rdiv_lt_0_compat; lra).
  replace (- log1p b / b) with (- (log1p b / b)) by (field; lra).
  assert (E : fl (- (log1p b / b)) = - fl (log1p b / b)) by apply round_NE_opp. rewrite E.
  replace (- fl (log1p b / b) - - ln (1 + b) / b)
    with (- (fl (log1p b / b) - ln (1 + b) / b)) by (field; lra).
  rewrite Rabs_Ropp. replace (10 * u) with (8 * u + 2 * u) by ring.
  apply quotient_close; try lra.
  apply (tiny_le (-402)); [easy|].
  apply Rle_trans with (/ (1 + b) * (1 - 8 * u)).
  - apply Rle_trans with (bpow radix2 (-401) * / 2).
    + replace (/ 2) with (bpow radix2 (-1)) by reflexivity. rewrite <- bpow_plus.
      apply bpow_le. lia.
    + apply Rmult_le_compat; try apply bpow_ge_0; try lra.
      replace (-401)%Z with (- (401))%Z by easy. rewrite bpow_opp. apply Rinv_le_contravar; [lra|].
      replace 401%Z with (400 + 1)%Z by easy. rewrite bpow_plus. replace (bpow radix2 1) with 2 by reflexivity.
      destruct Rb as (_ & R1). assert (1 <= bpow radix2 400) by (apply (bpow_le radix2 0); lia). lra.
  - assert (b / (1 + b) * (1 - 8 * u) <= log1p b).
    { apply Rle_trans with (ln (1 + b) * (1 - 8 * u)); [apply Rmult_le_compat_r; lra|lra]. }
    apply Rmult_le_reg_r with b; [assumption|]. unfold Rdiv. rewrite (Rmult_assoc (log1p b)), Rinv_l by lra.
    replace (/ (1 + b) * (1 - 8 * u) * b) with (b / (1 + b) * (1 - 8 * u)) by (field; lra). lra.
Qed.

Theorem computed_epsilon_is_enough :
  let ts := terms log log1p rho delta b in
  Rabs (total - exact_sum (map Rabs ts)) <= 4 * u * exact_sum (map Rabs ts) ->
  rho * (1 + b) - ln (1 + 1 / b) + (ln (1 / delta) - ln (1 + b)) / b
  <= computed_epsilon log log1p rho delta b total.
Proof.
  intros ts Ht. unfold computed_epsilon. fold ts.
  pose proof b_pos as B. pose proof rho_pos. pose proof delta_range as D. destruct Rdelta as (D0 & D1).
  apply Rle_trans with (2 := Rmax_r _ _).
  pose proof first_term as T1. pose proof second_term as T2.
  pose proof third_term as T3. pose proof fourth_term as T4.
  assert (F : List.Forall (generic_format radix2 binary64) (ts ++ [fl (ROUNDING * total)])).
  { unfold ts, terms. destruct inverse_b as (I0 & I1). repeat constructor; try apply fl_format.
    apply generic_format_opp. destruct Hlog as (_ & L). apply L.
    - split; [apply fl_format|]. unfold finite. apply Rle_lt_trans with (bpow radix2 400).
      + apply fl_abs_le; [now apply bpow_format|]. rewrite Rabs_right; [assumption|].
        apply Rle_ge. apply Rle_trans with (2 := I0). apply bpow_ge_0.
      + apply bpow_lt. lia.
    - destruct (fl_err_pos (1 / b)) as (A & _); [apply (tiny_le (-400)); easy|].
      apply Rlt_le_trans with (2 := A). apply Rmult_lt_0_compat; [|lra].
      apply Rdiv_lt_0_compat; lra. }
  apply Rle_trans with (2 := sum_up_above _ F).
  unfold ts, terms in *. cbn [map app exact_sum fold_right] in *.
  unfold exact_sum in *. cbn [fold_right] in *.
  set (t1 := fl (rho * fl (1 + b))) in *. set (t2 := log1p (fl (1 / b))) in *.
  set (t3 := fl (- log delta / b)) in *. set (t4 := fl (- log1p b / b)) in *.
  set (y1 := rho * (1 + b)) in *. set (y2 := ln (1 + 1 / b)) in *.
  set (y3 := - ln delta / b) in *. set (y4 := ln (1 + b) / b) in *.
  assert (Y1 : bpow radix2 (-400) <= y1).
  { apply Rle_trans with (1 := proj1 Rrho). unfold y1. nra. }
  pose proof (bpow_gt_0 radix2 (-400)) as P4.
  assert (Y2 : 0 < y2).
  { unfold y2. rewrite <- ln_1. apply ln_increasing; [lra|].
    assert (0 < 1 / b) by (apply Rdiv_lt_0_compat; lra). lra. }
  assert (Y3 : 0 < y3) by (apply Rdiv_lt_0_compat; lra).
  assert (Y4 : 0 < y4).
  { apply Rdiv_lt_0_compat; [|assumption]. rewrite <- ln_1. apply ln_increasing; lra. }
  replace (- ln (1 + b) / b) with (- y4) in T4 by (unfold y4; field; lra).
  replace (y1 - y2 + (ln (1 / delta) - ln (1 + b)) / b) with (y1 - y2 + y3 - y4)
    by (unfold y3, y4; rewrite ln_div, ln_1 by lra; field; lra).
  apply Rabs_le_inv in T1, T2, T3, T4, Ht.
  rewrite Rabs_Ropp in Ht. rewrite (Rabs_right t1), (Rabs_right t2), (Rabs_right t3), (Rabs_left t4) in Ht by lra.
  assert (Tot : (y1 + y2 + y3 + y4) * (1 - 15 * u) <= total) by lra.
  unfold ROUNDING. destruct (fl_err_pos (16 / 2 ^ 52 * total)) as (E0 & _).
  { apply (tiny_le (-400 + -100)); [easy|]. rewrite bpow_plus.
    replace (bpow radix2 (-100)) with (/ 2 ^ 100) by (simpl; lra). lra. }
  lra.
Qed.
End Terms.
