(** The integer bounds of tail probabilities are bounds. *)

From Coq Require Import Reals List ZArith Lra Lia Bool Machin.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Raux.
From ReleasePath Require Import Constants Noise Laws Gaussian Floats Sampler Series.
Open Scope R_scope.

Lemma same {A} (a b : A) : Some a = Some b -> b = a.
Proof. congruence. Qed.

Lemma while_spec {S} (I : S -> Prop) fuel test step s s' :
  I s -> (forall s, I s -> test s = true -> I (step s)) ->
  while fuel test step s = Some s' -> I s' /\ test s' = false.
Proof.
  intros H0 H. revert s H0. induction fuel as [|fuel IH]; intros s H0 E; [easy|].
  simpl in E. destruct (test s) eqn:T; [|injection E as <-; auto].
  apply (IH (step s)); auto.
Qed.

Lemma div_real a b : (0 < b)%Z -> IZR (a / b) <= IZR a / IZR b < IZR (a / b) + 1.
Proof.
  intros Hb. pose proof (Z.div_mod a b ltac:(lia)) as E. pose proof (Z.mod_pos_bound a b Hb) as M.
  apply IZR_lt in Hb as Hb'. assert (IZR a = IZR b * IZR (a / b) + IZR (a mod b))
    by (rewrite <- mult_IZR, <- plus_IZR; now f_equal).
  destruct M as (M0 & M1). apply IZR_le in M0. apply IZR_lt in M1.
  split.
  - apply Rmult_le_reg_r with (IZR b); [assumption|]. unfold Rdiv.
    rewrite (Rmult_assoc (IZR a)), Rinv_l by lra. lra.
  - apply Rmult_lt_reg_r with (IZR b); [assumption|]. unfold Rdiv.
    rewrite (Rmult_assoc (IZR a)), Rinv_l by lra. lra.
Qed.

Lemma pow2_real k : (0 <= k)%Z -> 0 < IZR (2 ^ k).
Proof. intros H. apply IZR_lt. now apply Z.pow_pos_nonneg. Qed.

Lemma shiftl_real a k : (0 <= k)%Z -> IZR (Z.shiftl a k) = IZR a * IZR (2 ^ k).
Proof. intros H. now rewrite Z.shiftl_mul_pow2, mult_IZR. Qed.

Lemma shiftr_real a k : (0 <= k)%Z ->
  IZR (Z.shiftr a k) <= IZR a / IZR (2 ^ k) < IZR (Z.shiftr a k) + 1.
Proof. intros H. rewrite Z.shiftr_div_pow2 by assumption. apply div_real. now apply Z.pow_pos_nonneg. Qed.

(** A signed term of a series, divided and rounded down: off by at most its own error and one. *)
Lemma signed_term m p t d : (0 < d)%Z ->
  Rabs (IZR ((if Nat.odd m then - p else p) / d) - sign m * (t / IZR d)) <= Rabs (IZR p - t) + 1.
Proof.
  intros Hd. pose proof (div_real (if Nat.odd m then - p else p)%Z d Hd) as D.
  assert (Hd' : 1 <= IZR d) by (apply IZR_le; lia).
  assert (E : sign m * (IZR p / IZR d) = IZR (if Nat.odd m then - p else p)%Z / IZR d).
  { unfold sign. destruct Nat.odd; [rewrite opp_IZR|]; field; lra. }
  replace (IZR _ - sign m * (t / IZR d))
    with ((IZR ((if Nat.odd m then - p else p) / d) - sign m * (IZR p / IZR d))
          + sign m * ((IZR p - t) / IZR d)) by (field; lra).
  rewrite E. apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rplus_comm. apply Rplus_le_compat.
  - rewrite Rabs_mult. unfold Rdiv. rewrite Rabs_mult, Rabs_inv, (Rabs_right (IZR d)) by lra.
    assert (Rabs (sign m) = 1) as -> by (unfold sign; destruct Nat.odd; [rewrite Rabs_left|apply Rabs_R1]; lra).
    rewrite Rmult_1_l. rewrite <- (Rmult_1_r (Rabs (IZR p - t))) at 2.
    apply Rmult_le_compat_l; [apply Rabs_pos|]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
  - apply Rabs_le. lra.
Qed.

Lemma odd_nat m : Z.odd (Z.of_nat m) = Nat.odd m.
Proof.
  induction m as [|m IH]; [easy|].
  now rewrite Nat2Z.inj_succ, Z.odd_succ, <- Z.negb_odd, IH, Nat.odd_succ, <- Nat.negb_odd.
Qed.

(** ** Pi, by Machin's formula *)

Lemma arctan_correct fuel q work a : (4 <= q)%Z -> (0 <= work)%Z ->
  arctan_of_inverse fuel q work = Some a ->
  Rabs (IZR a - IZR (2 ^ work) * atan (/ IZR q)) <= IZR work / 2 + 4.
Proof.
  intros Hq Hw. unfold arctan_of_inverse. rewrite Z.shiftl_mul_pow2, Z.mul_1_l by assumption.
  pose proof (pow2_real work Hw) as W. set (w := IZR (2 ^ work)) in *.
  assert (Hq' : 4 <= IZR q) by (now apply IZR_le).
  set (x := / IZR q). assert (X : 0 < x) by (apply Rinv_0_lt_compat; lra).
  assert (P : forall m, (2 ^ work / q ^ (2 * Z.of_nat m + 1) / (q * q)
                         = 2 ^ work / q ^ (2 * Z.of_nat (S m) + 1))%Z).
  { intros m. assert (0 < q ^ (2 * Z.of_nat m + 1))%Z by (apply Z.pow_pos_nonneg; lia).
    rewrite Z.div_div by nia. f_equal. rewrite Nat2Z.inj_succ.
    replace (2 * Z.succ (Z.of_nat m) + 1)%Z with (2 * Z.of_nat m + 1 + 2)%Z by lia.
    rewrite (Z.pow_add_r q _ 2) by lia. rewrite Z.pow_2_r. reflexivity. }
  assert (T : forall m, IZR (q ^ (2 * Z.of_nat m + 1)) = / (x ^ (2 * m + 1))).
  { intros m. unfold x. rewrite pow_inv, Rinv_inv.
    replace (2 * Z.of_nat m + 1)%Z with (Z.of_nat (2 * m + 1)) by lia. symmetry. apply pow_IZR. }
  set (I := fun '(power, total, n) => exists m, n = Z.of_nat m
    /\ power = (2 ^ work / q ^ (2 * Z.of_nat m + 1))%Z
    /\ (m = O \/ (q ^ (2 * Z.of_nat m - 1) <= 2 ^ work)%Z)
    /\ Rabs (IZR total - w * series (fun j => sign j * arctan_term x j) (S m)) <= 2 * (INR m + 1)).
  assert (Q : forall m, let p := (2 ^ work / q ^ (2 * Z.of_nat m + 1))%Z in
    0 <= IZR p <= w * x ^ (2 * m + 1) /\ w * x ^ (2 * m + 1) < IZR p + 1).
  { intros m p. assert (0 < q ^ (2 * Z.of_nat m + 1))%Z by (apply Z.pow_pos_nonneg; lia).
    pose proof (div_real (2 ^ work) _ H) as D. rewrite T in D. fold w p in D.
    unfold Rdiv in D. rewrite Rinv_inv in D.
    assert (0 <= IZR p); [|lra]. apply IZR_le, Z.div_pos; [|assumption].
    apply Z.lt_le_incl, Z.pow_pos_nonneg; lia. }
  destruct (while fuel _ _ _) as [[[power total] n]|] eqn:E; [|easy]. intros R. injection R as <-.
  apply (while_spec I) in E.
  - destruct E as ((m & -> & -> & Hm & HE) & Z0). apply negb_false_iff, Z.eqb_eq in Z0.
    destruct (Q m) as (_ & Q1). rewrite Z0 in Q1.
    pose proof (arctan_rest (S m) x ltac:(lra)) as R.
    assert (L : w * arctan_term x (S m) <= 1).
    { unfold arctan_term. replace (2 * S m + 1)%nat with (2 + (2 * m + 1))%nat by lia.
      rewrite pow_add. pose proof (odd_pos (S m)). pose proof (pos_INR (S m)).
      assert (0 <= x ^ (2 * m + 1)) by (apply pow_le; lra).
      assert (x ^ 2 <= 1).
      { assert (x <= 1); [|simpl; nra]. unfold x. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
      apply Rmult_le_reg_r with (1 + 2 * INR (S m)); [assumption|].
      replace (w * (x ^ 2 * x ^ (2 * m + 1) / (1 + 2 * INR (S m))) * (1 + 2 * INR (S m)))
        with (x ^ 2 * (w * x ^ (2 * m + 1))) by (field; lra).
      assert (0 <= w * x ^ (2 * m + 1)) by (apply Rmult_le_pos; lra).
      assert (x ^ 2 * (w * x ^ (2 * m + 1)) <= 1 * (w * x ^ (2 * m + 1)))
        by (apply Rmult_le_compat_r; assumption). lra. }
    assert (M : INR m <= IZR work / 4 + 1 / 2).
    { destruct Hm as [->|Hm]; [simpl; apply IZR_le in Hw; lra|].
      assert (4 ^ (2 * Z.of_nat m - 1) <= 2 ^ work)%Z.
      { apply Z.le_trans with (2 := Hm). apply Z.pow_le_mono_l. lia. }
      change 4%Z with (2 ^ 2)%Z in H. destruct m as [|m]; [simpl; apply IZR_le in Hw; lra|].
      rewrite <- Z.pow_mul_r in H by lia. apply Z.pow_le_mono_r_iff in H; try lia.
      apply IZR_le in H. rewrite mult_IZR, minus_IZR, mult_IZR, <- INR_IZR_INZ in H. lra. }
    replace (IZR total - w * atan x)
      with ((IZR total - w * series (fun j => sign j * arctan_term x j) (S m))
        + - (w * (atan x - series (fun j => sign j * arctan_term x j) (S m)))) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_Ropp, Rabs_mult, (Rabs_right w) by lra.
    assert (w * Rabs (atan x - series (fun j => sign j * arctan_term x j) (S m)) <= 1).
    { apply Rle_trans with (2 := L). apply Rmult_le_compat_l; lra. }
    lra.
  - exists O. split; [easy|]. split; [simpl Z.of_nat; now rewrite Z.pow_1_r|].
    split; [now left|]. destruct (Q O) as (Q0 & Q1). simpl Z.of_nat in Q0, Q1.
    rewrite Z.mul_0_r, Z.add_0_l, Z.pow_1_r in Q0, Q1.
    simpl. unfold sign, arctan_term. simpl. apply Rabs_le. simpl in Q0, Q1. lra.
  - intros [[power' total'] n'] (m & -> & -> & Hm & HE) Hp. exists (S m).
    apply negb_true_iff, Z.eqb_neq in Hp. split; [lia|]. split; [apply P|]. split.
    + right. replace (2 * Z.of_nat (S m) - 1)%Z with (2 * Z.of_nat m + 1)%Z by lia.
      apply Z.nlt_ge. intros L. apply Hp. apply Z.div_small. split; [|assumption].
      apply Z.lt_le_incl, Z.pow_pos_nonneg; lia.
    + rewrite P. replace (Z.of_nat m + 1)%Z with (Z.of_nat (S m)) by lia. rewrite odd_nat.
      destruct (Q (S m)) as (Q0 & Q1). set (p := (2 ^ work / q ^ (2 * Z.of_nat (S m) + 1))%Z) in *.
      pose proof (signed_term (S m) p (w * x ^ (2 * S m + 1)) (2 * Z.of_nat (S m) + 1) ltac:(lia))
        as B.
      assert (D : IZR (2 * Z.of_nat (S m) + 1) = 1 + 2 * INR (S m))
        by (rewrite plus_IZR, mult_IZR, <- INR_IZR_INZ; ring).
      rewrite D in B. assert (Rabs (IZR p - w * x ^ (2 * S m + 1)) <= 1) by (apply Rabs_le; lra).
      change (series (fun j => sign j * arctan_term x j) (S (S m)))
        with (series (fun j => sign j * arctan_term x j) (S m) + sign (S m) * arctan_term x (S m)).
      rewrite plus_IZR, (S_INR m). pose proof (odd_pos (S m)).
      match goal with |- Rabs (IZR total' + ?b - _) <= _ =>
        replace (IZR total' + b - w * (series (fun j => sign j * arctan_term x j) (S m)
                  + sign (S m) * arctan_term x (S m)))
          with ((IZR total' - w * series (fun j => sign j * arctan_term x j) (S m))
            + (b - sign (S m) * (w * x ^ (2 * S m + 1) / (1 + 2 * INR (S m)))))
          by (unfold arctan_term; field; lra) end.
      apply Rle_trans with (1 := Rabs_triang _ _). lra.
Qed.

(** 2^work pi, rounded: less than a unit and a half too small, and less than half a unit too large. *)
Lemma pi_correct fuel work p : (0 <= work <= 2 ^ 27)%Z -> pi fuel work = Some p ->
  IZR (2 ^ work) * PI - 3 / 2 < IZR p < IZR (2 ^ work) * PI + 1 / 2.
Proof.
  intros Hw. unfold pi. destruct (arctan_of_inverse fuel 5 _) as [a|] eqn:A; [|easy].
  destruct (arctan_of_inverse fuel 239 _) as [b|] eqn:B; [|easy]. intros R. injection R as <-.
  apply arctan_correct in A; try lia. apply arctan_correct in B; try lia.
  pose proof (shiftr_real (16 * a - 4 * b) 32 ltac:(lia)) as Sh.
  rewrite minus_IZR, !mult_IZR in Sh.
  rewrite Z.pow_add_r, mult_IZR, plus_IZR in A, B by lia.
  pose proof Machin_4_5_239 as M. destruct Hw as (W0 & W1). apply IZR_le in W1.
  pose proof (pow2_real work W0) as W. set (w := IZR (2 ^ work)) in *.
  set (s := IZR (Z.shiftr _ _)) in *. apply Rabs_le_inv in A, B.
  change (IZR (2 ^ 32)) with 4294967296 in *. change (IZR (2 ^ 27)) with 134217728 in W1.
  assert (E : w * PI = 16 * (w * atan (/ 5)) - 4 * (w * atan (/ 239))) by nra.
  unfold Rdiv in Sh. split; nra.
Qed.

(** 2^work / sqrt(2 pi), to less than 2 units. *)
Lemma inverse_root_correct fuel work c : (64 <= work <= 2 ^ 27)%Z ->
  inverse_root_two_pi fuel work = Some c ->
  (0 <= c)%Z /\ Rabs (IZR c - IZR (2 ^ work) / sqrt (2 * PI)) < 2.
Proof.
  intros Hw. unfold inverse_root_two_pi. destruct (pi fuel work) as [p|] eqn:P; [|easy].
  intros R. apply same in R. subst c. apply pi_correct in P; [|lia].
  rewrite Z.shiftl_mul_pow2, Z.mul_1_l by lia.
  assert (W0 : IZR (2 ^ 64) <= IZR (2 ^ work)) by (apply IZR_le, Z.pow_le_mono_r; lia).
  change (IZR (2 ^ 64)) with 18446744073709551616 in W0.
  set (w := IZR (2 ^ work)) in *. pose proof PI_RGT_0 as PI0. pose proof PI_4 as PI4.
  destruct pi_range as (PI3 & _).
  set (r := sqrt (2 * PI)). assert (R0 : 2 < r < 3) by (pose proof root_range; unfold r; lra).
  assert (R2 : r * r = 2 * PI) by (apply sqrt_sqrt; lra).
  set (B := w / r). assert (HB : w = B * r) by (unfold B; field; lra).
  assert (B0 : 100 < B) by nra.
  assert (Hp : (0 < p)%Z) by (apply lt_IZR; nra).
  assert (N : IZR (2 ^ (3 * work - 1)) = B * B * (w * PI)).
  { assert (2 * IZR (2 ^ (3 * work - 1)) = w * w * w).
    { rewrite <- mult_IZR, <- Z.pow_succ_r by lia.
      replace (Z.succ (3 * work - 1)) with (work + work + work)%Z by lia.
      rewrite !Z.pow_add_r by lia. now rewrite !mult_IZR. }
    assert (2 * (B * B * (w * PI)) = w * w * w); [|lra].
    replace (2 * (B * B * (w * PI))) with (w * (B * B * (2 * PI))) by ring.
    rewrite <- R2. rewrite HB at 2 3. ring. }
  set (A := (2 ^ (3 * work - 1) / p)%Z).
  pose proof (div_real (2 ^ (3 * work - 1)) p Hp) as D. fold A in D. rewrite N in D.
  assert (A0 : (0 <= A)%Z) by (apply Z.div_pos; [apply Z.lt_le_incl, Z.pow_pos_nonneg; lia|lia]).
  split; [apply Z.sqrt_nonneg|].
  pose proof (Z.sqrt_spec A A0) as (S0 & S1). apply IZR_le in S0. apply IZR_lt in S1.
  pose proof (Z.sqrt_nonneg A) as Sn. apply IZR_le in Sn.
  rewrite !mult_IZR in S0, S1. rewrite succ_IZR in S1. set (c := IZR (Z.sqrt A)) in *.
  assert (P0 : 0 < IZR p) by (now apply IZR_lt).
  (* A is between B^2 - B and B^2 + B *)
  assert (U : B * B * (w * PI) / IZR p <= B * B + B).
  { apply Rmult_le_reg_r with (IZR p); [assumption|]. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    apply Rle_trans with ((B * B + B) * (w * PI - 3 / 2)); [|apply Rmult_le_compat_l; nra].
    assert (3 / 2 * (B + 1) <= w * PI) by nra. nra. }
  assert (L : B * B - B <= B * B * (w * PI) / IZR p).
  { apply Rmult_le_reg_r with (IZR p); [assumption|]. unfold Rdiv.
    rewrite (Rmult_assoc _ (/ _)), Rinv_l, Rmult_1_r by lra.
    apply Rle_trans with ((B * B - B) * (w * PI + 1 / 2)); [apply Rmult_le_compat_l; nra|].
    assert (1 / 2 * (B - 1) <= w * PI) by nra. nra. }
  apply Rabs_def1; nra.
Qed.

(** ** Alternating series in integers *)

Lemma work_range numerator denominator precision : (0 <= numerator)%Z -> (0 < denominator)%Z ->
  let spread := spread_of numerator denominator in
  (1 <= spread /\ precision + 64 <= work_of spread precision <= precision + spread + 96)%Z.
Proof.
  intros Hn Hd spread. assert (1 <= spread)%Z.
  { unfold spread, spread_of. assert (0 <= 185 * numerator / (128 * denominator))%Z
      by (apply Z.div_pos; lia). lia. }
  unfold work_of, WORD. pose proof (Z.div_mod (spread + 32) 64 ltac:(lia)).
  pose proof (Z.mod_pos_bound (spread + 32) 64 ltac:(lia)). lia.
Qed.

Section Alternating.
Variables (t0 y S0 : R) (stride : Z) (precision error numerator denominator : Z).
Variables (fuel : nat) (first : Z -> option Z).
Hypothesis Hy : y = IZR numerator / IZR denominator.
Hypothesis Hn : (0 <= numerator)%Z.
Hypothesis Hd : (0 < denominator)%Z.
Hypothesis Hs : (0 <= stride)%Z.
Hypothesis He : (0 <= error)%Z.
Hypothesis Ht : 0 <= t0.
Hypothesis Hp : (0 <= precision)%Z.
Let summand j := sign j * (t0 * power_term y j / (1 + IZR stride * INR j)).
Hypothesis Rest : forall n, Rabs (S0 - series summand n) <= t0 * power_term y n.
Let spread := spread_of numerator denominator.
Let work := work_of spread precision.
Hypothesis First : forall start, first work = Some start ->
  (0 <= start)%Z /\ Rabs (IZR start - t0 * IZR (2 ^ work)) <= IZR error.

Lemma y_pos : 0 <= y.
Proof.
  rewrite Hy. apply IZR_le in Hn. apply IZR_lt in Hd. apply Rmult_le_pos; [assumption|].
  left. now apply Rinv_0_lt_compat.
Qed.

Lemma spread_bound : (1 <= spread)%Z /\ exp y <= IZR (2 ^ spread).
Proof.
  assert (P : (0 <= 185 * numerator / (128 * denominator))%Z) by (apply Z.div_pos; lia).
  unfold spread, spread_of. split; [lia|].
  set (k := (185 * numerator / (128 * denominator) + 1)%Z) in *.
  pose proof (div_real (185 * numerator) (128 * denominator) ltac:(lia)) as D.
  rewrite !mult_IZR in D. apply IZR_lt in Hd as Hd'.
  assert (Y : 185 / 128 * y <= IZR k).
  { unfold k. rewrite plus_IZR, Hy.
    replace (185 / 128 * (IZR numerator / IZR denominator))
      with (185 * IZR numerator / (128 * IZR denominator)) by (field; lra). lra. }
  assert (E : IZR (2 ^ k) = exp (IZR k * ln 2)).
  { rewrite <- (Z2Nat.id k) by lia. rewrite <- pow_IZR, <- INR_IZR_INZ.
    rewrite <- Rpower_pow by lra. reflexivity. }
  rewrite E. apply exp_le. destruct ln_2 as (L & _).
  pose proof y_pos. nra.
Qed.

Lemma alternating_correct low high :
  alternating_bounds fuel first error numerator denominator stride precision = Some (low, high) ->
  IZR low <= S0 * IZR (2 ^ precision) <= IZR high.
Proof.
  unfold alternating_bounds. fold spread. fold work. destruct spread_bound as (Sp & Ex).
  pose proof y_pos as Y. apply IZR_le in He as He'. apply IZR_le in Hs as Hs'.
  apply IZR_lt in Hd as Hd'. apply IZR_le in Hn as Hn'.
  assert (E1 : 1 <= exp y) by (apply Rle_trans with (2 := exp_ge y); lra).
  pose proof (work_range numerator denominator precision Hn Hd) as Wr. cbv zeta in Wr.
  fold spread work in Wr.
  set (shift := (work - precision)%Z). assert (Hshift : (0 <= shift)%Z) by lia.
  assert (Wk : work = (precision + shift)%Z) by lia. clear Wr.
  assert (W : 0 < IZR (2 ^ work)) by (apply pow2_real; lia). set (w := IZR (2 ^ work)) in *.
  destruct (first work) as [start|] eqn:F; [|easy]. destruct (First start eq_refl) as (F0 & F1).
  set (T := fun m => t0 * w * power_term y m).
  set (e := (IZR error + 1) * exp y).
  assert (Te : forall m, IZR error * power_term y m + series (power_term y) m <= e).
  { intros m. unfold e. pose proof (exp_part m y Y). pose proof (power_term_le y m Y). nra. }
  assert (e0 : 0 <= e) by (unfold e; nra).
  set (I := fun '(term, total, n) => exists m, n = Z.of_nat m /\ (0 <= term)%Z
    /\ Rabs (IZR term - T m) <= IZR error * power_term y m + series (power_term y) m
    /\ Rabs (IZR total - w * series summand (S m)) <= (INR m + 1) * e + INR m).
  destruct (while fuel _ _ _) as [[[term total] n]|] eqn:E; [|easy]. intros R.
  apply (while_spec I) in E.
  - destruct E as ((m & -> & T0 & HT & HE) & Test).
    apply orb_false_iff in Test. destruct Test as (Z1 & Z2). apply negb_false_iff, Z.eqb_eq in Z1.
    apply Z.leb_gt in Z2. subst term. rewrite Rminus_0_l, Rabs_Ropp in HT.
    assert (Tm : T m <= e) by (pose proof (Te m); pose proof (Rle_abs (T m)); lra).
    assert (Y2 : y / INR (S m) <= 1).
    { assert (0 < INR (S m)) by (apply lt_0_INR; lia).
      apply Rmult_le_reg_r with (INR (S m)); [assumption|]. unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra. rewrite S_INR.
      apply IZR_lt in Z2. rewrite !mult_IZR, <- INR_IZR_INZ in Z2. rewrite Hy.
      apply Rmult_le_reg_r with (IZR denominator); [assumption|]. unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l by lra. lra. }
    pose proof (Rest (S m)) as Rm.
    assert (TS : t0 * w * power_term y (S m) <= e).
    { rewrite power_term_S. apply Rle_trans with (2 := Tm). unfold T.
      pose proof (power_term_pos y m Y).
      replace (t0 * w * (power_term y m * y / INR (S m)))
        with (t0 * w * power_term y m * (y / INR (S m))) by (unfold Rdiv; ring).
      rewrite <- (Rmult_1_r (t0 * w * power_term y m)) at 2. apply Rmult_le_compat_l; [|assumption].
      apply Rmult_le_pos; [apply Rmult_le_pos; lra|assumption]. }
    set (slack := Z.shiftl ((Z.of_nat m + 2) * (error + 2)) spread) in *.
    assert (Sl : (INR m + 2) * e + INR m <= IZR slack).
    { unfold slack. rewrite shiftl_real, mult_IZR, !plus_IZR, <- INR_IZR_INZ by lia.
      apply Rle_trans with ((INR m + 2) * (IZR error + 2) * exp y).
      - unfold e. pose proof (pos_INR m). nra.
      - apply Rmult_le_compat_l; [|assumption]. pose proof (pos_INR m). apply Rmult_le_pos; lra. }
    assert (B : Rabs (IZR total - w * S0) <= IZR slack).
    { replace (IZR total - w * S0) with ((IZR total - w * series summand (S m))
        + - (w * (S0 - series summand (S m)))) by ring.
      apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_Ropp, Rabs_mult, (Rabs_right w) by lra.
      assert (w * Rabs (S0 - series summand (S m)) <= t0 * w * power_term y (S m)).
      { rewrite (Rmult_comm t0), Rmult_assoc. apply Rmult_le_compat_l; lra. }
      lra. }
    apply Rabs_le_inv in B. apply same in R. injection R as -> ->.
    fold shift.
    pose proof (shiftr_real (total - slack) shift Hshift) as L.
    pose proof (shiftr_real (total + slack) shift Hshift) as H.
    rewrite minus_IZR in L. rewrite plus_IZR in H. rewrite plus_IZR.
    assert (Pw : w = IZR (2 ^ precision) * IZR (2 ^ shift)).
    { unfold w. rewrite Wk, Z.pow_add_r, mult_IZR by lia. reflexivity. }
    pose proof (pow2_real shift Hshift) as P2.
    set (a := IZR (2 ^ precision)) in *. set (b := IZR (2 ^ shift)) in *.
    split.
    + apply Rle_trans with (1 := proj1 L). apply Rmult_le_reg_r with b; [assumption|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. rewrite Pw in B. lra.
    + apply Rlt_le, Rle_lt_trans with (2 := proj2 H). apply Rmult_le_reg_r with b; [assumption|].
      unfold Rdiv. rewrite (Rmult_assoc _ (/ b)), Rinv_l by lra. rewrite Pw in B. lra.
  - exists O. split; [easy|]. split; [assumption|]. unfold T, power_term. simpl.
    unfold summand, sign, power_term. simpl. split.
    + replace (t0 * w * (1 / 1)) with (t0 * w) by field. lra.
    + replace (w * (0 + 1 * (t0 * (1 / 1) / (1 + IZR stride * 0)))) with (t0 * w) by field.
      apply Rle_trans with (1 := F1). unfold e. nra.
  - intros [[term' total'] n'] (m & -> & T0 & HT & HE) _. exists (S m).
    set (term'' := (term' * numerator / (denominator * (Z.of_nat m + 1)))%Z).
    assert (Dm : (0 < denominator * (Z.of_nat m + 1))%Z) by nia.
    assert (M0 : 0 < INR (S m)) by (apply lt_0_INR; lia).
    pose proof (div_real (term' * numerator) _ Dm) as D. fold term'' in D.
    assert (Dr : IZR (term' * numerator) / IZR (denominator * (Z.of_nat m + 1))
                 = IZR term' * (y / INR (S m))).
    { rewrite !mult_IZR, plus_IZR, <- INR_IZR_INZ, Hy, S_INR. rewrite S_INR in M0. field. lra. }
    rewrite Dr in D.
    assert (HT' : Rabs (IZR term'' - T (S m))
      <= IZR error * power_term y (S m) + series (power_term y) (S m)).
    { assert (Tr : T (S m) = T m * (y / INR (S m))).
      { unfold T. rewrite power_term_S. unfold Rdiv. ring. }
      replace (IZR term'' - T (S m)) with ((IZR term'' - IZR term' * (y / INR (S m)))
        + (IZR term' - T m) * (y / INR (S m))) by (rewrite Tr; ring).
      apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult.
      assert (Yq : 0 <= y / INR (S m)).
      { apply Rmult_le_pos; [assumption|]. left. now apply Rinv_0_lt_compat. }
      rewrite (Rabs_right (y / INR (S m))) by lra.
      assert (Rabs (IZR term'' - IZR term' * (y / INR (S m))) <= 1) by (apply Rabs_le; lra).
      pose proof (lag m y Y) as Lg.
      assert (Rabs (IZR term' - T m) * (y / INR (S m))
        <= (IZR error * power_term y m + series (power_term y) m) * (y / INR (S m)))
        by (apply Rmult_le_compat_r; assumption).
      assert (IZR error * power_term y m * (y / INR (S m)) = IZR error * power_term y (S m))
        by (rewrite power_term_S; unfold Rdiv; ring). lra. }
    split; [lia|]. split; [apply Z.div_pos; nia|]. split; [exact HT'|].
    replace (Z.of_nat m + 1)%Z with (Z.of_nat (S m)) by lia. rewrite odd_nat.
    pose proof (signed_term (S m) term'' (T (S m)) (1 + stride * Z.of_nat (S m)) ltac:(nia)) as B.
    rewrite plus_IZR, mult_IZR, <- INR_IZR_INZ in B.
    change (series summand (S (S m))) with (series summand (S m) + summand (S m)).
    assert (Ps : 0 < 1 + IZR stride * INR (S m)).
    { assert (0 <= IZR stride * INR (S m)) by (apply Rmult_le_pos; lra). lra. }
    rewrite plus_IZR.
    match goal with |- Rabs (IZR total' + ?b - _) <= _ =>
      replace (IZR total' + b - w * (series summand (S m) + summand (S m)))
        with ((IZR total' - w * series summand (S m))
          + (b - sign (S m) * (T (S m) / (1 + IZR stride * INR (S m)))))
        by (unfold summand, T; field; lra) end.
    apply Rle_trans with (1 := Rabs_triang _ _).
    pose proof (Te (S m)).
    apply Rle_trans with ((INR m + 1) * e + INR m + (e + 1)); [lra|rewrite S_INR; lra].
Qed.
End Alternating.

(** ** Tail probabilities *)

Lemma vanishes_correct numerator denominator precision :
  (0 < denominator)%Z -> (0 <= precision)%Z -> vanishes numerator denominator precision = true ->
  exp (- (IZR numerator / IZR denominator)) * IZR (2 ^ precision) <= 1.
Proof.
  intros Hd Hp H. unfold vanishes in H. apply Z.leb_le, IZR_le in H. rewrite !mult_IZR in H.
  apply IZR_lt in Hd. apply IZR_le in Hp as Hp'.
  assert (E : IZR (2 ^ precision) = exp (IZR precision * ln 2)).
  { rewrite <- (Z2Nat.id precision) by lia. rewrite <- pow_IZR, <- INR_IZR_INZ.
    rewrite <- Rpower_pow by lra. reflexivity. }
  rewrite E, <- exp_plus. apply Rle_trans with (exp 0); [apply exp_le|rewrite exp_0; lra].
  destruct ln_2 as (_ & L).
  assert (128 / 184 * IZR precision <= IZR numerator / IZR denominator).
  { apply Rmult_le_reg_r with (IZR denominator); [assumption|]. unfold Rdiv at 2.
    rewrite (Rmult_assoc (IZR numerator)), Rinv_l by lra. lra. }
  nra.
Qed.

Theorem exp_bounds_correct fuel numerator denominator precision low high :
  (0 <= numerator)%Z -> (0 < denominator)%Z -> (0 <= precision)%Z ->
  exp_bounds fuel numerator denominator precision = Some (low, high) ->
  IZR low <= exp (- (IZR numerator / IZR denominator)) * IZR (2 ^ precision) <= IZR high.
Proof.
  intros Hn Hd Hp. unfold exp_bounds. set (y := IZR numerator / IZR denominator).
  pose proof (pow2_real precision Hp) as P2.
  assert (X : 0 < exp (- y)) by apply exp_pos.
  destruct vanishes eqn:V.
  - intros R. injection R as <- <-. split; [apply Rmult_le_pos; lra|]. now apply vanishes_correct.
  - destruct alternating_bounds as [[l h]|] eqn:E; [|easy]. intros R. injection R as <- <-.
    assert (Y : 0 <= y).
    { apply IZR_le in Hn. apply IZR_lt in Hd. apply Rmult_le_pos; [assumption|].
      left. now apply Rinv_0_lt_compat. }
    apply (alternating_correct 1 y (exp (- y))) in E; try easy; try lia; try lra.
    + split; [|apply E].
      destruct (Z.max_spec 0 l) as [(_ & ->)|(_ & ->)]; [apply E|]. apply Rmult_le_pos; lra.
    + intros n. rewrite Rmult_1_l.
      apply Rle_trans with (2 := exp_rest n y Y). right. f_equal. f_equal.
      clear. induction n as [|n IH]; [reflexivity|]. cbn [series]. rewrite IH. f_equal. field.
    + intros start R. apply same in R. subst start.
      pose proof (work_range numerator denominator precision Hn Hd) as W. cbv zeta in W.
      rewrite Z.shiftl_1_l. split; [apply Z.lt_le_incl, Z.pow_pos_nonneg; lia|].
      rewrite Rmult_1_l, Rminus_eq_0, Rabs_R0. lra.
Qed.

Lemma tail_area x : tail x = 1 / 2 - area x / sqrt (2 * PI).
Proof. unfold tail. now rewrite area_density. Qed.

(** ** The tail of the Gaussian law *)

Lemma is_derive_tail x : is_derive tail x (- density 1 x).
Proof.
  unfold tail. evar_last.
  - apply (is_derive_minus (fun _ => 1 / 2) (fun x => RInt (density 1) 0 x)).
    + apply is_derive_constant.
    + apply (is_derive_RInt (density 1) (fun x => RInt (density 1) 0 x) 0 x).
      * apply filter_forall. intros y.
        apply (RInt_correct (V := R_CompleteNormedModule) (density 1)), (density_int 1).
      * apply (density_cont 1).
  - flat. ring.
Qed.

Lemma tail_0 : tail 0 = 1 / 2.
Proof. unfold tail. rewrite RInt_point. unfold zero; simpl. ring. Qed.

Lemma tail_minus x y : tail x - tail y = RInt (density 1) x y.
Proof.
  unfold tail. pose proof (RInt_Chasles (V := R_CompleteNormedModule) (density 1) 0 x y
    (density_int 1 0 x) (density_int 1 x y)) as E.
  unfold plus in E. simpl in E. lra.
Qed.

Lemma tail_decreasing x y : x < y -> tail y < tail x.
Proof.
  intros H. apply Rminus_gt_0_lt. rewrite tail_minus.
  apply RInt_gt_0; [assumption| |]; intros.
  - apply density_pos. lra.
  - apply density_cont.
Qed.

Lemma tail_pos x : 0 < tail x.
Proof.
  assert (0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0.
  unfold tail. rewrite density_RInt by lra. set (v := / (1 * sqrt 2) * x).
  rewrite Rmult_0_r. assert (half 0 = 0) as -> by (unfold half; now rewrite RInt_point).
  pose proof (half_lt v) as L. rewrite Rminus_0_r.
  assert (half v / sqrt PI < 1 / 2); [|lra].
  apply Rmult_lt_reg_r with (sqrt PI); [assumption|]. unfold Rdiv at 1.
  rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

Lemma tail_le x : 0 <= x -> tail x <= exp (- (x ^ 2 / 2)) / 2.
Proof.
  intros Hx. assert (0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0.
  assert (S2 : 0 < sqrt 2) by (apply sqrt_lt_R0; lra).
  unfold tail. rewrite density_RInt by lra. rewrite Rmult_0_r.
  assert (half 0 = 0) as -> by (unfold half; now rewrite RInt_point). rewrite Rminus_0_r.
  set (v := / (1 * sqrt 2) * x). assert (V : 0 <= v).
  { apply Rmult_le_pos; [|assumption]. left. apply Rinv_0_lt_compat. lra. }
  assert (E : bell v = exp (- (x ^ 2 / 2))).
  { unfold bell. f_equal. unfold v. assert (sqrt 2 * sqrt 2 = 2) by (apply sqrt_sqrt; lra).
    replace (- (/ (1 * sqrt 2) * x) ^ 2) with (- (x ^ 2 / (sqrt 2 * sqrt 2))) by (field; lra).
    now rewrite H0. }
  rewrite <- E. pose proof (half_ge v V) as G.
  assert (1 / 2 * (1 - bell v) <= half v / sqrt PI); [|lra].
  apply Rmult_le_reg_r with (sqrt PI); [assumption|]. unfold Rdiv at 2.
  rewrite (Rmult_assoc (half v)), Rinv_l by lra. lra.
Qed.

Lemma tail_opp x : tail (- x) = 1 - tail x.
Proof.
  unfold tail. rewrite !density_RInt by lra. rewrite Rmult_0_r.
  replace (/ (1 * sqrt 2) * - x) with (- (/ (1 * sqrt 2) * x)) by ring. rewrite half_opp.
  assert (half 0 = 0) as -> by (unfold half; now rewrite RInt_point).
  assert (0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0. field. lra.
Qed.

(** tail(x) comes as near 0 as wanted. *)
Lemma tail_small t : 0 < t -> exists x, 0 <= x /\ tail x < t.
Proof.
  intros Ht. set (x := Rmax 1 (- 2 * ln t)).
  pose proof (Rmax_l 1 (- 2 * ln t)) as X1. pose proof (Rmax_r 1 (- 2 * ln t)) as X2.
  fold x in X1, X2. exists x. split; [lra|].
  apply Rle_lt_trans with (1 := tail_le x ltac:(lra)).
  assert (exp (- (x ^ 2 / 2)) <= t); [|lra].
  apply Rle_trans with (exp (ln t)); [apply exp_le; nra|rewrite exp_ln; lra].
Qed.

Theorem normal_tail_bounds_correct fuel numerator denominator precision low high :
  (0 <= numerator)%Z -> (0 < denominator)%Z -> (1 <= precision <= 2 ^ 24)%Z ->
  normal_tail_bounds fuel numerator denominator precision = Some (low, high) ->
  IZR low <= tail (IZR numerator / IZR denominator) * IZR (2 ^ precision) <= IZR high.
Proof.
  intros Hn Hd Hp. unfold normal_tail_bounds. set (x := IZR numerator / IZR denominator).
  pose proof (pow2_real precision ltac:(lia)) as P2.
  apply IZR_le in Hn as Hn'. apply IZR_lt in Hd as Hd'.
  assert (X : 0 <= x) by (apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
  pose proof (tail_pos x) as T0.
  assert (Hs : (0 <= numerator ^ 2)%Z) by (apply Z.pow_nonneg; lia).
  assert (Ht : (0 < 2 * denominator ^ 2)%Z) by (assert (0 < denominator ^ 2)%Z by (apply Z.pow_pos_nonneg; lia); lia).
  assert (Y : IZR (numerator ^ 2) / IZR (2 * denominator ^ 2) = x ^ 2 / 2).
  { rewrite mult_IZR, !Z.pow_2_r, !mult_IZR. unfold x. field. lra. }
  destruct vanishes eqn:V.
  - intros R. injection R as <- <-. split; [apply Rmult_le_pos; lra|].
    apply vanishes_correct in V; [|lia|lia]. rewrite Y in V. pose proof (tail_le x X). nra.
  - set (first := fun work => _). set (error := (2 * numerator / denominator + 4)%Z).
    destruct alternating_bounds as [[l h]|] eqn:E; [|easy]. intros R. injection R as <- <-.
    assert (R0 : 0 < sqrt (2 * PI)) by (apply sqrt_lt_R0; pose proof PI_RGT_0; lra).
    assert (Err : 2 * x + 3 <= IZR error).
    { unfold error. rewrite plus_IZR. pose proof (div_real (2 * numerator) denominator Hd) as D.
      rewrite mult_IZR in D. unfold x. replace (2 * IZR numerator / IZR denominator)
        with (2 * (IZR numerator / IZR denominator)) in D by (field; lra). lra. }
    apply (alternating_correct (x / sqrt (2 * PI)) (x ^ 2 / 2) (area x / sqrt (2 * PI))) in E;
      try assumption; try lia.
    + assert (Half : IZR (Z.shiftl 1 (precision - 1)) = IZR (2 ^ precision) / 2).
      { rewrite Z.shiftl_1_l. replace precision with (Z.succ (precision - 1)) at 2 by lia.
        rewrite Z.pow_succ_r, mult_IZR by lia. field. }
      assert (T : tail x * IZR (2 ^ precision)
        = IZR (Z.shiftl 1 (precision - 1)) - area x / sqrt (2 * PI) * IZR (2 ^ precision)).
      { rewrite Half, tail_area. field. lra. }
      rewrite minus_IZR. split; [|lra].
      destruct (Z.max_spec 0 (Z.shiftl 1 (precision - 1) - h)) as [(_ & ->)|(_ & ->)].
      * rewrite minus_IZR. lra.
      * apply Rmult_le_pos; lra.
    + now symmetry.
    + unfold error.
      assert (0 <= 2 * numerator / denominator)%Z by (apply Z.div_pos; lia). lia.
    + apply Rmult_le_pos; [assumption|]. left. now apply Rinv_0_lt_compat.
    + intros n. pose proof (area_rest n x X) as A.
      assert (S : forall n, series (fun j => sign j * (x / sqrt (2 * PI) * power_term (x ^ 2 / 2) j
        / (1 + IZR 2 * INR j))) n = series (fun j => sign j * odd_term x j) n / sqrt (2 * PI)).
      { clear - R0. induction n as [|n IH]; [simpl; field; lra|]. cbn [series]. rewrite IH.
        unfold odd_term. pose proof (odd_pos n). field. lra. }
      rewrite S.
      replace (area x / sqrt (2 * PI) - series (fun j => sign j * odd_term x j) n / sqrt (2 * PI))
        with ((area x - series (fun j => sign j * odd_term x j) n) * / sqrt (2 * PI)) by (field; lra).
      rewrite Rabs_mult, (Rabs_right (/ sqrt (2 * PI)))
        by (left; now apply Rinv_0_lt_compat).
      replace (x / sqrt (2 * PI) * power_term (x ^ 2 / 2) n)
        with (x * power_term (x ^ 2 / 2) n * / sqrt (2 * PI)) by (field; lra).
      apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
      apply Rle_trans with (1 := A). unfold odd_term.
      assert (P : 0 <= x * power_term (x ^ 2 / 2) n).
      { apply Rmult_le_pos; [assumption|]. apply power_term_pos. pose proof (pow2_ge_0 x). lra. }
      pose proof (pos_INR n). apply Rmult_le_reg_r with (1 + 2 * INR n); [lra|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra.
    + intros start. unfold first. pose proof (work_range _ _ precision Hs Ht) as W. cbv zeta in W.
      assert (Sp : (spread_of (numerator ^ 2) (2 * denominator ^ 2) <= 2 * precision + 1)%Z).
      { unfold spread_of. apply Z.leb_gt in V.
        assert (185 * numerator ^ 2 / (128 * (2 * denominator ^ 2)) <= 2 * precision)%Z; [|lia].
        apply Z.div_le_upper_bound; nia. }
      destruct inverse_root_two_pi as [c|] eqn:Cc; [|easy]. intros R. apply same in R. subst start.
      apply inverse_root_correct in Cc; [|change (2 ^ 27)%Z with (8 * 2 ^ 24)%Z; lia].
      destruct Cc as (C0 & C1). split; [apply Z.div_pos; nia|].
      pose proof (div_real (c * numerator) denominator Hd) as D.
      set (w := IZR (2 ^ _)) in *. rewrite mult_IZR in D.
      replace (IZR c * IZR numerator / IZR denominator) with (IZR c * x) in D by (unfold x; field; lra).
      replace (x / sqrt (2 * PI) * w) with (w / sqrt (2 * PI) * x) by (field; lra).
      apply Rabs_lt_inv in C1. set (a := w / sqrt (2 * PI)) in *. apply Rabs_le. split; nra.
Qed.
