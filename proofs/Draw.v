(** A draw is what it is said to be, whichever way it goes: by integers, or in double precision. *)

From Coq Require Import Reals List ZArith Lra Lia Bool.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core Mult_error Sterbenz.
From ReleasePath Require Import Constants Noise Laws Gaussian Floats Sampler Series Bounds Clip.
Open Scope R_scope.

Local Notation u := (/ 2 ^ 53).

(** ** By integers *)

Lemma first_bits_range U bits :
  IZR (first_bits U bits) <= U * bpow radix2 bits < IZR (first_bits U bits) + 1.
Proof. unfold first_bits. split; [apply Zfloor_lb|apply Zfloor_ub]. Qed.

Lemma bpow_IZR k : (0 <= k)%Z -> bpow radix2 k = IZR (2 ^ k).
Proof. intros H. rewrite <- (IZR_Zpower radix2) by assumption. reflexivity. Qed.

(** The next word completes the first bits. *)
Lemma next_bits U bits : (0 <= bits)%Z ->
  Z.lor (Z.shiftl (first_bits U bits) WORD) (more U bits) = first_bits U (bits + WORD).
Proof.
  intros Hb. unfold more. set (v := first_bits U bits). set (v' := first_bits U (bits + WORD)).
  assert (R : (Z.shiftl v WORD <= v' < Z.shiftl v WORD + 2 ^ WORD)%Z).
  { pose proof (first_bits_range U bits) as A. pose proof (first_bits_range U (bits + WORD)) as B.
    fold v v' in A, B. rewrite bpow_plus, <- Rmult_assoc in B.
    rewrite (bpow_IZR WORD) in B by (unfold WORD; lia). rewrite Z.shiftl_mul_pow2 by (unfold WORD; lia).
    assert (W : 0 < IZR (2 ^ WORD)) by (apply IZR_lt; easy). set (w := (2 ^ WORD)%Z) in *. split.
    - apply Z.lt_succ_r, lt_IZR. rewrite succ_IZR, mult_IZR. nra.
    - apply lt_IZR. rewrite plus_IZR, mult_IZR. nra. }
  set (r := (v' - Z.shiftl v WORD)%Z). assert (Hr : (0 <= r < 2 ^ WORD)%Z) by lia.
  replace v' with (Z.shiftl v WORD + r)%Z by lia.
  assert (D : Z.land (Z.shiftl v WORD) r = 0%Z).
  { rewrite <- (Z.mod_small r (2 ^ WORD)) by lia.
    apply Z.bits_inj'. intros n Hn. rewrite Z.land_spec, Z.bits_0.
    destruct (Z.lt_ge_cases n WORD) as [L|L].
    - now rewrite Z.shiftl_spec_low.
    - rewrite Z.mod_pow2_bits_high by (unfold WORD in *; lia). apply andb_false_r. }
  now rewrite Z.add_nocarry_lxor, Z.lxor_lor.
Qed.

(** What `below` answers is whether U < x, if the bounds are bounds of x. *)
Theorem below_correct fuel U x bits last bounds answer :
  (0 <= bits)%Z -> (bits + WORD * Z.of_nat fuel <= last)%Z ->
  (forall p low high, (bits <= p <= last)%Z -> bounds p = Some (low, high) ->
     IZR low <= x * IZR (2 ^ p) <= IZR high) ->
  below fuel U (first_bits U bits) bits bounds = Some answer -> (answer = true <-> U < x).
Proof.
  revert bits. induction fuel as [|fuel IH]; intros bits Hb Hl B E; [easy|].
  cbn [below] in E. destruct (bounds (bits + WORD)%Z) as [[low high]|] eqn:Eb; [|easy].
  assert (Wp : (WORD = 64)%Z) by easy.
  apply B in Eb; [|lia]. pose proof (first_bits_range U bits) as F.
  rewrite bpow_IZR in F by assumption. rewrite Z.pow_add_r, mult_IZR in Eb by lia.
  assert (P : 0 < IZR (2 ^ bits)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  assert (W : 0 < IZR (2 ^ WORD)) by (apply IZR_lt; easy).
  set (b := IZR (2 ^ bits)) in *. set (w := IZR (2 ^ WORD)) in *.
  destruct (Z.leb_spec (Z.shiftl (first_bits U bits + 1) WORD) low) as [L|L].
  - injection E as <-. split; [|easy]. intros _. apply IZR_le in L.
    rewrite shiftl_real, plus_IZR in L by lia. fold w in L.
    assert (U * b * w < x * b * w) by nra. apply Rmult_lt_reg_r with (b * w); nra.
  - destruct (Z.leb_spec high (Z.shiftl (first_bits U bits) WORD)) as [H|H].
    + injection E as <-. split; [easy|]. intros N. exfalso. apply IZR_le in H.
      rewrite shiftl_real in H by lia. fold w in H.
      assert (U * b * w < x * b * w); [|nra]. apply Rmult_lt_compat_r; [assumption|].
      now apply Rmult_lt_compat_r.
    + rewrite next_bits in E by assumption. apply (IH (bits + WORD)%Z); auto; try lia.
      intros p low' high' Hp. apply B. lia.
Qed.

(** `smallest_at_most` ends between a number that is exceeded and one that is not. *)
Theorem smallest_correct fuel exceeds guess first k : (first <= guess)%Z ->
  smallest_at_most fuel exceeds guess first = Some k ->
  (first <= k)%Z /\ exceeds k = false /\ (k = first \/ exceeds (k - 1)%Z = true).
Proof.
  intros Hg. unfold smallest_at_most.
  destruct (while fuel _ _ (guess - 1, guess, 1)%Z) as [[[low1 high1] step1]|] eqn:E1; [|easy].
  apply (while_spec (fun '(low, high, step) => low < high /\ 1 <= step /\ first <= high)%Z) in E1;
    [|lia|].
  2: { intros [[low high] step] (A & B & C) T. apply andb_true_iff in T. destruct T as (T & _).
       apply Z.leb_le in T. lia. }
  destruct E1 as ((A1 & B1 & C1) & T1). apply andb_false_iff in T1.
  assert (L : Z.max low1 (first - 1) = (first - 1)%Z \/ exceeds (Z.max low1 (first - 1)) = true).
  { destruct T1 as [T1|T1]; [apply Z.leb_gt in T1; left; lia|].
    apply negb_false_iff in T1. destruct (Z.max_spec low1 (first - 1)) as [(_ & ->)|(_ & ->)]; auto. }
  destruct (while fuel _ _ (Z.max low1 (first - 1), high1, step1)) as [[[low2 high2] step2]|] eqn:E2;
    [|easy].
  apply (while_spec (fun '(low, high, step) => (low < high /\ 1 <= step /\ first - 1 <= low)
    /\ (low = first - 1 \/ exceeds low = true))%Z) in E2; [|split; [lia|exact L]|].
  2: { intros [[low high] step] (A & D) T. split; [lia|now right]. }
  destruct E2 as ((A2 & D2) & T2).
  destruct (while fuel _ _ (low2, high2)) as [[low3 high3]|] eqn:E3; [|easy].
  intros R. apply same in R. subst k.
  apply (while_spec (fun '(low, high) => (low < high /\ first - 1 <= low) /\ exceeds high = false
    /\ (low = first - 1 \/ exceeds low = true))%Z) in E3; [|split; [lia|auto]|].
  2: { intros [low high] (A & C & D) T. apply Z.ltb_lt in T.
       assert (low < (low + high) / 2 < high)%Z.
       { pose proof (Z.div_mod (low + high) 2 ltac:(lia)).
         pose proof (Z.mod_pos_bound (low + high) 2 ltac:(lia)). lia. }
       destruct (exceeds ((low + high) / 2)%Z) eqn:X; (split; [lia|auto]). }
  destruct E3 as ((A3 & C3 & D3) & T3). apply Z.ltb_ge in T3.
  split; [lia|]. split; [assumption|]. replace (high3 - 1)%Z with low3 by lia.
  destruct D3 as [->|D3]; [left; lia|now right].
Qed.

(** The exact path: sigma is the fraction numerator / denominator. *)
Theorem exact_draw fuel U numerator denominator guess k exceeds :
  (0 < numerator)%Z -> (0 < denominator)%Z -> (0 <= guess)%Z ->
  (forall k, (0 <= k)%Z -> decided fuel U numerator denominator k (exceeds k)) ->
  smallest_at_most fuel exceeds guess 0 = Some k ->
  drawn U (IZR numerator / IZR denominator) k.
Proof.
  intros Hn Hd Hg H E. apply smallest_correct in E; [|assumption]. destruct E as (K0 & K1 & K2).
  apply IZR_lt in Hn as Hn'. apply IZR_lt in Hd as Hd'.
  assert (T : forall j, (0 <= j)%Z -> (exceeds j = true <->
    U < tail ((IZR j + 1 / 2) / (IZR numerator / IZR denominator)))).
  { intros j Hj. destruct (H j Hj) as (words & bits & W & F & B & A).
    eapply below_correct with (last := (2 ^ 24)%Z) in A; [exact A|lia|unfold WORD; lia|].
    intros p low high Hp Eb. apply normal_tail_bounds_correct in Eb; [|nia|lia|lia].
    replace ((IZR j + 1 / 2) / (IZR numerator / IZR denominator))
      with (IZR ((2 * j + 1) * denominator) / IZR (2 * numerator)); [assumption|].
    rewrite !mult_IZR, plus_IZR, mult_IZR. field. lra. }
  split; [assumption|]. split.
  - apply Rnot_lt_le. intros L. apply T in L; [congruence|assumption].
  - destruct (Z.eq_dec k 0) as [->|N]; [now left|right]. destruct K2 as [K2|K2]; [lia|].
    apply T in K2; [|lia]. rewrite minus_IZR in K2.
    now replace (IZR k - 1 / 2) with (IZR k - 1 + 1 / 2) by lra.
Qed.

(** ** In double precision *)

Lemma tail_inverse p : 0 < p <= 1 / 2 -> exists z, 0 <= z /\ tail z = p.
Proof.
  intros (P0 & P1). destruct (tail_small p P0) as (x & X0 & X1).
  destruct (IVT_gen tail 0 x p) as (z & Z0 & Z1).
  - intros y. apply continuity_pt_filterlim.
    apply (ex_derive_continuous (V := R_NormedModule)). eexists. apply is_derive_tail.
  - rewrite tail_0, Rmin_right, Rmax_left by lra. lra.
  - rewrite Rmin_left in Z0 by lra. exists z. split; [apply Z0|assumption].
Qed.

(** By Mills' ratio, the inverse moves at most 1.2534 times as much as p does, relative to p. *)
Lemma inverse_moves a b p : 0 <= a -> 0 <= b -> 0 < p -> p <= tail a -> p <= tail b ->
  Rabs (a - b) * p <= 12534 / 10000 * Rabs (tail a - tail b).
Proof.
  intros Ha Hb Hp. revert a b Ha Hb.
  assert (H : forall a b, 0 <= a < b -> p <= tail b ->
    (b - a) * p <= 12534 / 10000 * (tail a - tail b)).
  { intros a b (Ha & Hab) H. rewrite tail_minus.
    assert (D : forall x, a <= x <= b -> density 1 b <= density 1 x).
    { intros x Hx. unfold density, Rdiv. apply Rmult_le_compat_r.
      - left. apply Rinv_0_lt_compat. rewrite Rmult_1_l. apply sqrt_lt_R0. pose proof PI_RGT_0. lra.
      - apply exp_le. simpl. nra. }
    assert (I : (b - a) * density 1 b <= RInt (density 1) a b).
    { replace ((b - a) * density 1 b) with (RInt (fun _ => density 1 b) a b)
        by (rewrite RInt_const; reflexivity).
      apply RInt_le; [lra|apply ex_RInt_const|apply density_int|]. intros x Hx. apply D. lra. }
    assert (M : p <= 12534 / 10000 * density 1 b).
    { apply Rle_trans with (1 := H). apply Rle_trans with (1 := tail_le b ltac:(lra)).
      unfold density. replace (- b ^ 2 / (2 * 1 ^ 2)) with (- (b ^ 2 / 2)) by field.
      pose proof (exp_pos (- (b ^ 2 / 2))). set (e := exp _) in *.
      assert (S0 : 0 < sqrt (2 * PI)) by (apply sqrt_lt_R0; pose proof PI_RGT_0; lra).
      destruct root_range as (_ & S1).
      apply Rmult_le_reg_r with (sqrt (2 * PI)); [assumption|].
      replace (12534 / 10000 * (e / (1 * sqrt (2 * PI))) * sqrt (2 * PI)) with (12534 / 10000 * e)
        by (field; lra). nra. }
    apply Rle_trans with ((b - a) * (12534 / 10000 * density 1 b)).
    - apply Rmult_le_compat_l; lra.
    - lra. }
  intros a b Ha Hb H1 H2. destruct (Rtotal_order a b) as [L|[->|L]].
  - rewrite Rabs_left, Rabs_right by (pose proof (tail_decreasing a b L); lra).
    specialize (H a b ltac:(lra) H2). lra.
  - rewrite !Rminus_eq_0, Rabs_R0. lra.
  - rewrite Rabs_right, Rabs_left by (pose proof (tail_decreasing b a L); lra).
    specialize (H b a ltac:(lra) H1). lra.
Qed.

(** A float is off by at most half a place, of a normal or of the smallest number. *)
Lemma fl_off x : 0 <= x ->
  x * (1 - u) - bpow radix2 (-1074) <= fl x <= x * (1 + u) + bpow radix2 (-1074).
Proof.
  intros Hx. pose proof (bpow_gt_0 radix2 (-1074)) as B.
  destruct (Rle_dec (bpow radix2 (-1022)) x) as [L|L]; [pose proof (fl_err_pos x L); lra|].
  apply Rnot_le_lt in L. pose proof (error_le_half_ulp radix2 binary64 (fun x => negb (Z.even x)) x) as E.
  change (round radix2 binary64 (Znearest _) x) with (fl x) in E.
  assert (U : ulp radix2 binary64 x <= bpow radix2 (-1074)).
  { destruct (Req_dec x 0) as [->|N].
    - rewrite ulp_FLT_0 by easy. lra.
    - rewrite ulp_neq_0 by assumption. apply bpow_le. unfold cexp, FLT_exp.
      assert (mag radix2 x <= -1022)%Z by (apply mag_le_bpow; [assumption|rewrite Rabs_right; lra]).
      lia. }
  apply Rabs_le_inv in E. split; nra.
Qed.

Lemma integer_format k : (Z.abs k <= 2 ^ 53)%Z -> generic_format radix2 binary64 (IZR k).
Proof.
  intros H. destruct (Z.eq_dec (Z.abs k) (2 ^ 53)) as [E|N].
  - assert (K : k = (2 ^ 53)%Z \/ k = (- 2 ^ 53)%Z) by lia.
    destruct K as [K|K]; rewrite K; [|rewrite opp_IZR; apply generic_format_opp];
      rewrite <- bpow_IZR by easy; now apply bpow_format.
  - apply generic_format_FLT. exists (Float radix2 k 0); simpl; [unfold F2R; simpl; ring|lia|easy].
Qed.

Lemma fl_2_63 : fl (bpow radix2 63 + 1 / 2) = bpow radix2 63.
Proof.
  assert (F : generic_format radix2 binary64 (bpow radix2 63)) by (now apply bpow_format).
  assert (G : 0 < bpow radix2 63) by apply bpow_gt_0.
  apply Rle_antisym.
  - apply Rnot_lt_le. intros L.
    apply (succ_le_lt radix2 binary64 _ _ F (fl_format _)) in L.
    rewrite succ_eq_pos, ulp_bpow in L by lra. simpl (FLT_exp _ _ _) in L.
    destruct (fl_err_pos (bpow radix2 63 + 1 / 2)) as (_ & E).
    + apply Rle_trans with (bpow radix2 63); [apply bpow_le; lia|lra].
    + simpl bpow in *. lra.
  - rewrite <- (fl_id (bpow radix2 63) F) at 1. apply fl_le. lra.
Qed.

Lemma rint_half x : Rabs (x - IZR (ZnearestE x)) <= 1 / 2.
Proof. pose proof (Znearest_half (fun n => negb (Z.even n)) x). lra. Qed.

Theorem fast_draw ndtri m scale U :
  ndtri_is_close ndtri -> (0 <= m < 2 ^ 63)%Z -> first_bits U 64 = m ->
  bpow radix2 (-900) <= scale <= MAX_SCALE -> vouched ndtri m scale ->
  drawn U scale (rounded ndtri m scale).
Proof.
  intros Hc Hm HU (S0 & S1) (V0 & V1). unfold MAX_SCALE in S1.
  set (eta := bpow radix2 (-1074)) in *. pose proof (bpow_gt_0 radix2 (-1074)) as Eta. fold eta in Eta.
  assert (Sc : eta * 2 ^ 150 <= scale).
  { apply Rle_trans with (2 := S0). unfold eta.
    replace (2 ^ 150) with (bpow radix2 150) by (simpl; lra). rewrite <- bpow_plus.
    apply bpow_le. lia. }
  assert (Es : eta <= / 2 ^ 200).
  { replace (/ 2 ^ 200) with (bpow radix2 (-200)) by (simpl; lra). apply bpow_le. lia. }
  (* the numerator *)
  set (n := numerator m) in *. set (M := IZR m + 1 / 2).
  assert (M0 : 0 <= IZR m) by (apply IZR_le; lia).
  assert (M1 : IZR m <= bpow radix2 63 - 1).
  { rewrite bpow_IZR, <- minus_IZR by easy. apply IZR_le. lia. }
  assert (F63 : generic_format radix2 binary64 (bpow radix2 63)) by (now apply bpow_format).
  assert (N1 : fl (IZR m) <= bpow radix2 63).
  { rewrite <- (fl_id (bpow radix2 63) F63). apply fl_le. lra. }
  assert (N2 : n <= bpow radix2 63).
  { unfold n, numerator. rewrite <- fl_2_63. apply fl_le. lra. }
  assert (N3 : M * (1 - 9 / 4 * u) <= n <= M * (1 + 9 / 4 * u)).
  { pose proof (fl_off (IZR m) M0) as A. pose proof (fl_pos (IZR m) M0) as B.
    pose proof (fl_off (fl (IZR m) + 1 / 2) ltac:(lra)) as C. fold eta in A, C.
    unfold n, numerator, M in *. set (f := fl (IZR m)) in *. set (g := fl (f + 1 / 2)) in *.
    split; lra. }
  unfold FEWEST in V0. assert (Mb : 2 ^ 31 <= IZR m) by (unfold M in *; lra).
  assert (Bp : bpow radix2 63 = 2 ^ 63) by (simpl; lra).
  set (x := / n). assert (X : 0 < x <= / 2 ^ 32).
  { split; [apply Rinv_0_lt_compat; lra|apply Rinv_le_contravar; lra]. }
  assert (Xn : x * n = 1) by (unfold x; field; lra).
  (* the tail probability in double precision, and what belongs to it *)
  set (q := fl (n * bpow radix2 (- 64))) in *.
  assert (B64 : bpow radix2 (- 64) = / 2 ^ 64) by (simpl; lra).
  assert (Q : q = n * bpow radix2 (- 64)).
  { apply fl_id. apply mult_bpow_exact_FLT; [apply fl_format|].
    assert (32 < mag radix2 n)%Z; [|lia]. apply mag_gt_bpow. rewrite Rabs_right by lra.
    replace (bpow radix2 32) with (2 ^ 32) by (simpl; lra). exact V0. }
  assert (Q1 : bpow radix2 (- 32) <= q <= 1 / 2).
  { rewrite Q, B64. replace (bpow radix2 (- 32)) with (/ 2 ^ 32) by (simpl; lra). lra. }
  assert (B32 : bpow radix2 (- 32) = / 2 ^ 32) by (simpl; lra).
  destruct (tail_inverse q) as (z' & Z0 & Zq); [lra|].
  assert (Fq : is_float q).
  { split; [apply fl_format|]. unfold finite. rewrite Rabs_right by lra.
    apply Rlt_le_trans with (bpow radix2 0); [simpl; lra|apply bpow_le; lia]. }
  pose proof (Hc q z' Fq Q1 Z0 Zq) as Hi. set (i := ideal ndtri m) in *.
  change (- ndtri q) with i in Hi.
  replace (bpow radix2 (- 45)) with (/ 2 ^ 45) in Hi by (simpl; lra). apply Rabs_le_inv in Hi.
  assert (Z7 : z' <= 67 / 10).
  { apply Rnot_lt_le. intros L. pose proof (tail_le z' Z0) as T. rewrite Zq in T.
    assert (exp (- (z' ^ 2 / 2)) <= exp (- (2244 / 100))) by (apply exp_le; simpl; nra).
    assert (exp (- (2244 / 100)) <= / 2 ^ 32); [|lra].
    assert (E : 2 ^ 32 = exp (32 * ln 2)) by (rewrite <- (Rpower_pow 32 2) by lra; unfold Rpower; f_equal; simpl; ring).
    rewrite E, <- exp_Ropp. apply exp_le. pose proof ln_2. lra. }
  (* the number itself *)
  pose proof (first_bits_range U 64) as R. rewrite HU in R.
  replace (bpow radix2 64) with (2 ^ 64) in R by (simpl; lra).
  assert (U0 : 0 < U <= 1 / 2) by lra.
  destruct (tail_inverse U U0) as (z & Zz & ZU).
  assert (Dz : Rabs (z - z') <= 6268 / 10000 * x + 283 / 100 * u).
  { set (p := IZR m * (1 - 9 / 4 * u) * / 2 ^ 64).
    assert (P : 0 < p) by (unfold p; lra).
    pose proof (inverse_moves z z' p Zz Z0 P) as I. rewrite ZU, Zq in I.
    assert (I' : Rabs (z - z') * p <= 12534 / 10000 * Rabs (U - q)).
    { apply I; [unfold p; lra|]. rewrite Q, B64. unfold p, M in *. lra. }
    assert (Uq : Rabs (U - q) <= (1 / 2 + 9 / 4 * u * M) * / 2 ^ 64).
    { rewrite Q, B64. apply Rabs_le. unfold M in *. lra. }
    set (D := Rabs (z - z')) in *. assert (D0 : 0 <= D) by apply Rabs_pos.
    assert (Mx : M * x <= 1 + 3 * u).
    { apply Rmult_le_reg_r with n; [lra|]. rewrite Rmult_assoc, Xn. lra. }
    assert (mx : 1 - 3 * u - 1 / 2 * x <= IZR m * x).
    { apply Rmult_le_reg_r with n; [lra|]. rewrite Rmult_assoc, Xn.
      replace ((1 - 3 * u - 1 / 2 * x) * n) with ((1 - 3 * u) * n - 1 / 2 * (x * n)) by ring.
      rewrite Xn. unfold M in *. lra. }
    assert (J : D * (IZR m * (1 - 9 / 4 * u)) <= 12534 / 10000 * (1 / 2 + 9 / 4 * u * M))
      by (unfold p in I'; lra).
    assert (K : D * (IZR m * x) * (1 - 9 / 4 * u) <= 12534 / 10000 * (1 / 2 * x + 9 / 4 * u * (M * x))).
    { replace (D * (IZR m * x) * (1 - 9 / 4 * u)) with (D * (IZR m * (1 - 9 / 4 * u)) * x) by ring.
      replace (12534 / 10000 * (1 / 2 * x + 9 / 4 * u * (M * x)))
        with (12534 / 10000 * (1 / 2 + 9 / 4 * u * M) * x) by ring.
      apply Rmult_le_compat_r; lra. }
    assert (L : D * (1 - / 2 ^ 32) <= D * (IZR m * x)) by (apply Rmult_le_compat_l; lra).
    lra. }
  (* the bound of the error *)
  assert (I0 : 0 <= i) by lra.
  set (r := radius ndtri m) in *.
  assert (Hr : 6398 / 10000 * x + 79 / 10 * u + 510 * u * i <= r).
  { unfold r, radius. fold n i.
    pose proof (fl_off WIDTH ltac:(unfold WIDTH; lra)) as A. fold eta in A. unfold WIDTH in *.
    assert (A' : 6399 / 10000 <= fl (64 / 100)) by lra. set (wd := fl (64 / 100)) in *.
    change (wd / n) with (wd * x).
    assert (A2 : 6399 / 10000 * x <= wd * x) by (apply Rmult_le_compat_r; lra).
    pose proof (fl_off (wd * x) ltac:(lra)) as B. fold eta in B.
    pose proof (fl_pos (wd * x) ltac:(lra)) as B'. set (a := fl (wd * x)) in *.
    unfold ABS. pose proof (fl_off (a + / 2 ^ 50) ltac:(lra)) as C. fold eta in C.
    pose proof (fl_pos (a + / 2 ^ 50) ltac:(lra)) as C'. set (b := fl (a + / 2 ^ 50)) in *.
    unfold REL. pose proof (fl_off (/ 2 ^ 44 * i) ltac:(lra)) as E. fold eta in E.
    pose proof (fl_pos (/ 2 ^ 44 * i) ltac:(lra)) as E'. set (c := fl (/ 2 ^ 44 * i)) in *.
    pose proof (fl_off (b + c) ltac:(lra)) as G. fold eta in G. lra. }
  set (k := rounded ndtri m scale) in *.
  assert (Si : 0 <= i * scale) by (apply Rmult_le_pos; lra).
  pose proof (fl_off (i * scale) Si) as Hp. fold eta in Hp.
  pose proof (fl_pos (i * scale) Si) as Hp0. set (prod := fl (i * scale)) in *.
  pose proof (rint_half prod) as Hk. change (ZnearestE prod) with k in Hk. apply Rabs_le_inv in Hk.
  assert (Is : i * scale <= 7 * 2 ^ 50) by (apply Rmult_le_compat; lra).
  assert (K0 : (0 <= k)%Z).
  { apply Z.le_trans with (Zfloor prod); [apply Zfloor_lub; simpl; lra|apply Znearest_ge_floor]. }
  (* the difference is exact *)
  assert (Ex : fl (prod - IZR k) = prod - IZR k).
  { apply fl_id. destruct (Z.eq_dec k 0) as [->|Nk].
    - rewrite Rminus_0_r. apply fl_format.
    - assert (K1 : 1 <= IZR k) by (apply IZR_le; lia).
      apply sterbenz; try typeclasses eauto; [apply fl_format| |lra].
      apply integer_format. apply le_IZR. rewrite abs_IZR, Rabs_right by lra.
      rewrite <- bpow_IZR by easy. replace (bpow radix2 53) with (2 ^ 53) by (simpl; lra). lra. }
  rewrite Ex in V1.
  assert (Rs : 0 <= r * scale) by (apply Rmult_le_pos; lra).
  pose proof (fl_off (r * scale) Rs) as Hg. fold eta in Hg. set (g := fl (r * scale)) in *.
  assert (V : Rabs (prod - IZR k) + g < 1 / 2).
  { apply Rnot_le_lt. intros L. apply fl_le in L. rewrite fl_id in L; [lra|].
    replace (1 / 2) with (bpow radix2 (-1)) by (simpl; lra). now apply bpow_format. }
  assert (Main : Rabs (z * scale - IZR k) < 1 / 2).
  { apply Rle_lt_trans with (2 := V).
    replace (z * scale - IZR k)
      with ((prod - IZR k) + ((z - z') * scale + (z' - i) * scale + (i * scale - prod))) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _). apply Rplus_le_compat_l.
    assert (H1 : Rabs ((z - z') * scale) <= (6268 / 10000 * x + 283 / 100 * u) * scale).
    { rewrite Rabs_mult, (Rabs_right scale) by lra. apply Rmult_le_compat_r; lra. }
    assert (H2 : Rabs ((z' - i) * scale) <= 257 * u * i * scale).
    { rewrite Rabs_mult, (Rabs_right scale) by lra. apply Rmult_le_compat_r; [lra|].
      apply Rabs_le. lra. }
    assert (H3 : Rabs (i * scale - prod) <= u * (i * scale) + eta) by (apply Rabs_le; lra).
    assert (H4 : (6398 / 10000 * x + 79 / 10 * u + 510 * u * i) * scale <= r * scale)
      by (apply Rmult_le_compat_r; lra).
    pose proof (Rabs_triang ((z - z') * scale + (z' - i) * scale) (i * scale - prod)).
    pose proof (Rabs_triang ((z - z') * scale) ((z' - i) * scale)).
    assert (0 <= x * scale) by (apply Rmult_le_pos; lra).
    set (xs := x * scale) in *. set (is := i * scale) in *.
    replace ((6268 / 10000 * x + 283 / 100 * u) * scale)
      with (6268 / 10000 * xs + 283 / 100 * u * scale) in H1 by (unfold xs; ring).
    replace (257 * u * i * scale) with (257 * u * is) in H2 by (unfold is; ring).
    replace ((6398 / 10000 * x + 79 / 10 * u + 510 * u * i) * scale)
      with (6398 / 10000 * xs + 79 / 10 * u * scale + 510 * u * is) in H4 by (unfold xs, is; ring).
    lra. }
  apply Rabs_lt_inv in Main. split; [assumption|]. split.
  - rewrite <- ZU. left. apply tail_decreasing. apply Rmult_lt_reg_r with scale; [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
  - destruct (Z.eq_dec k 0) as [Ek|_]; [now left|right].
    rewrite <- ZU. apply tail_decreasing. apply Rmult_lt_reg_r with scale; [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** ** The law of a draw *)

Lemma noise_tail sigma k : 0 < sigma ->
  noise sigma k = tail ((IZR k - 1 / 2) / sigma) - tail ((IZR k + 1 / 2) / sigma).
Proof.
  intros Hs. rewrite tail_minus. unfold noise. rewrite !density_RInt by lra.
  assert (0 < sqrt 2) by (apply sqrt_lt_R0; lra). f_equal. f_equal; f_equal; field; lra.
Qed.

Theorem draws_have_the_law sigma k : 0 < sigma -> (0 <= k)%Z ->
  let upper := if Z.eq_dec k 0 then 1 / 2 else tail ((IZR k - 1 / 2) / sigma) in
  let chance := upper - tail ((IZR k + 1 / 2) / sigma) in
  noise sigma k = (if Z.eq_dec k 0 then 2 * chance else chance)
  /\ noise sigma (- k)%Z = noise sigma k.
Proof.
  intros Hs Hk. cbv zeta. split.
  - rewrite noise_tail by assumption. destruct Z.eq_dec as [->|N]; [|reflexivity].
    replace ((IZR 0 - 1 / 2) / sigma) with (- ((IZR 0 + 1 / 2) / sigma)) by (field; lra).
    rewrite tail_opp. lra.
  - rewrite !noise_tail by assumption. rewrite opp_IZR.
    replace ((- IZR k - 1 / 2) / sigma) with (- ((IZR k + 1 / 2) / sigma)) by (field; lra).
    replace ((- IZR k + 1 / 2) / sigma) with (- ((IZR k - 1 / 2) / sigma)) by (field; lra).
    rewrite !tail_opp. ring.
Qed.

Theorem one_draw U sigma k k' : 0 < sigma -> drawn U sigma k -> drawn U sigma k' -> k = k'.
Proof.
  intros Hs. assert (L : forall j j', drawn U sigma j -> drawn U sigma j' -> (j < j')%Z -> False).
  { intros j j' (J0 & J1 & _) (_ & _ & [->|J2]) H; [lia|].
    assert ((IZR j + 1 / 2) / sigma <= (IZR j' - 1 / 2) / sigma) as [M|M].
    { apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
      assert (IZR (j + 1) <= IZR j') by (apply IZR_le; lia). rewrite plus_IZR in *. lra. }
    - apply tail_decreasing in M. lra.
    - rewrite M in J1. lra. }
  intros H H'. destruct (Z.lt_trichotomy k k') as [M|[M|M]]; auto; exfalso; eauto.
Qed.
