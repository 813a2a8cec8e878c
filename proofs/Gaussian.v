(** The Gaussian law: its integral, its rounding, and what noise of that law costs. *)

From Coq Require Import Reals List ZArith Lra Lia Classical FinFun.
From Coquelicot Require Import Coquelicot.
From ReleasePath Require Import Privacy Laws Noise.
Import ListNotations.
Open Scope R_scope.

(** ** The integral of exp(-x^2) *)

Definition bell x := exp (- x ^ 2).

Lemma bell_cont x : continuous bell x.
Proof.
  unfold bell. apply (ex_derive_continuous (fun x => exp (- x ^ 2)) x). auto_derive. easy.
Qed.

Lemma bell_int a b : ex_RInt bell a b.
Proof. apply (ex_RInt_continuous bell). intros; apply bell_cont. Qed.

Definition half t := RInt bell 0 t.
Definition rest t := RInt (fun x => exp (- (t ^ 2 * (1 + x ^ 2))) / (1 + x ^ 2)) 0 1.

Lemma pos x : 0 < 1 + x ^ 2.
Proof. pose proof (pow2_ge_0 x). lra. Qed.

Lemma is_derive_half t : is_derive half t (bell t).
Proof.
  apply (is_derive_RInt bell half 0 t).
  - apply filter_forall. intros y. apply (RInt_correct bell), bell_int.
  - apply bell_cont.
Qed.

Lemma is_derive_rest t : is_derive rest t (- 2 * bell t * half t).
Proof.
  assert (D : forall u x, is_derive (fun z => exp (- (z ^ 2 * (1 + x ^ 2))) / (1 + x ^ 2)) u
                            (- 2 * u * exp (- (u ^ 2 * (1 + x ^ 2))))).
  { intros u x. auto_derive; [trivial|]. pose proof (pos x) as P. simpl in *. field. lra. }
  assert (- 2 * bell t * half t = RInt (fun x => Derive (fun z =>
    exp (- (z ^ 2 * (1 + x ^ 2))) / (1 + x ^ 2)) t) 0 1) as ->.
  { symmetry. apply is_RInt_unique.
    apply (is_RInt_ext (fun x => scal (- 2 * bell t) (scal t (bell (t * x + 0))))).
    - intros x _. etransitivity; [|symmetry; apply is_derive_unique, D]. unfold scal; simpl; unfold mult; simpl.
      unfold bell.
      replace (- (t * (t * 1) * (1 + x * (x * 1)))) with (- t ^ 2 + - (t * x + 0) ^ 2) by ring.
      rewrite exp_plus. ring.
    - change (is_RInt (fun x => scal (- 2 * bell t) (scal t (bell (t * x + 0)))) 0 1
        (scal (- 2 * bell t) (half t))).
      apply (is_RInt_scal (V := R_NormedModule)).
      apply (is_RInt_comp_lin (V := R_NormedModule) bell t 0 0 1).
      rewrite Rmult_0_r, Rmult_1_r, !Rplus_0_r.
      apply (RInt_correct (V := R_CompleteNormedModule)), bell_int. }
  apply (is_derive_RInt_param (fun z x => exp (- (z ^ 2 * (1 + x ^ 2))) / (1 + x ^ 2)) 0 1 t).
  - apply filter_forall. intros y x _. eexists. apply D.
  - intros x _. apply (continuity_2d_pt_ext (fun u v => - 2 * u * exp (- (u ^ 2 * (1 + v ^ 2))))).
    + intros u v. symmetry. apply is_derive_unique, D.
    + apply continuity_2d_pt_mult.
      * apply continuity_2d_pt_mult; [apply continuity_2d_pt_const|apply continuity_2d_pt_id1].
      * apply (continuity_1d_2d_pt_comp exp (fun u v => - (u ^ 2 * (1 + v ^ 2)))).
        { apply derivable_continuous, derivable_exp. }
        apply continuity_2d_pt_opp, continuity_2d_pt_mult.
        -- apply (continuity_2d_pt_ext (fun u v => u * u)); [intros; ring|].
           apply continuity_2d_pt_mult; apply continuity_2d_pt_id1.
        -- apply continuity_2d_pt_plus; [apply continuity_2d_pt_const|].
           apply (continuity_2d_pt_ext (fun u v => v * v)); [intros; ring|].
           apply continuity_2d_pt_mult; apply continuity_2d_pt_id2.
  - apply filter_forall. intros y. apply (ex_RInt_continuous (V := R_CompleteNormedModule)).
    intros x _. apply (ex_derive_continuous (V := R_NormedModule)). auto_derive.
    pose proof (pos x). lra.
Qed.

Lemma atan_int : is_RInt (fun x => / (1 + x ^ 2)) 0 1 (PI / 4).
Proof.
  replace (PI / 4) with (minus (atan 1) (atan 0))
    by (rewrite atan_1, atan_0; unfold minus, plus, opp; simpl; ring).
  apply (is_RInt_derive atan).
  - intros x _. replace (/ (1 + x ^ 2)) with (/ (1 + x²)) by (unfold Rsqr; f_equal; ring).
    apply is_derive_atan.
  - intros x _. apply (ex_derive_continuous (V := R_NormedModule)). auto_derive.
    pose proof (pos x). lra.
Qed.

Lemma half_rest t : half t ^ 2 + rest t = PI / 4.
Proof.
  assert (E : half 0 ^ 2 + rest 0 = PI / 4).
  { unfold half. rewrite RInt_point. unfold rest.
    rewrite (RInt_ext _ (fun x => / (1 + x ^ 2))).
    - rewrite (is_RInt_unique _ _ _ _ atan_int). unfold zero; simpl. ring.
    - intros x _. replace (- (0 ^ 2 * (1 + x ^ 2))) with 0 by ring. rewrite exp_0.
      unfold Rdiv. apply Rmult_1_l. }
  rewrite <- E.
  assert (D : forall u, is_derive (fun u => half u ^ 2 + rest u) u 0).
  { intros u. evar_last.
    - apply (is_derive_plus (fun u => half u ^ 2) rest);
        [apply is_derive_pow, is_derive_half|apply is_derive_rest].
    - unfold plus; simpl. ring. }
  destruct (MVT_gen (fun u => half u ^ 2 + rest u) 0 t (fun _ => 0)) as (c & _ & H).
  - intros; apply D.
  - intros x _. apply continuity_pt_filterlim.
    apply (ex_derive_continuous (V := R_NormedModule) (fun u => half u ^ 2 + rest u)).
    eexists. apply D.
  - lra.
Qed.

Lemma rest_bounds t : 0 < rest t <= bell t * (PI / 4).
Proof.
  assert (C : forall x, continuous (fun x => exp (- (t ^ 2 * (1 + x ^ 2))) / (1 + x ^ 2)) x).
  { intros x. apply (ex_derive_continuous (V := R_NormedModule)). auto_derive.
    pose proof (pos x). lra. }
  split.
  - apply RInt_gt_0; [lra| |auto]. intros x _. apply Rdiv_lt_0_compat; [apply exp_pos|apply pos].
  - assert (I : is_RInt (fun x => bell t * / (1 + x ^ 2)) 0 1 (bell t * (PI / 4)))
      by (apply (is_RInt_scal (V := R_NormedModule)), atan_int).
    rewrite <- (is_RInt_unique _ _ _ _ I). apply RInt_le; [lra| |now eexists; apply I|].
    + apply (ex_RInt_continuous (V := R_CompleteNormedModule)). auto.
    + intros x _. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, pos|].
      apply exp_le. pose proof (pow2_ge_0 (t * x)). nra.
Qed.

Lemma half_opp t : half (- t) = - half t.
Proof.
  assert (I : is_RInt (fun x => scal (- 1) (bell (- 1 * x + 0))) 0 t (half (- t))).
  { apply (is_RInt_comp_lin (V := R_NormedModule) bell (- 1) 0 0 t).
    replace (- 1 * 0 + 0) with 0 by ring. replace (- 1 * t + 0) with (- t) by ring.
    apply (RInt_correct (V := R_CompleteNormedModule)), bell_int. }
  assert (J : is_RInt (fun x => scal (- 1) (bell (- 1 * x + 0))) 0 t (scal (- 1) (half t))).
  { apply (is_RInt_ext (fun x => scal (- 1) (bell x))).
    - intros x _. unfold bell. do 3 f_equal. ring.
    - apply (is_RInt_scal (V := R_NormedModule)).
      apply (RInt_correct (V := R_CompleteNormedModule)), bell_int. }
  rewrite <- (is_RInt_unique _ _ _ _ I), (is_RInt_unique _ _ _ _ J).
  unfold scal; simpl; unfold mult; simpl. ring.
Qed.

Lemma half_lt t : half t < sqrt PI / 2.
Proof.
  assert (0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0.
  apply Rnot_le_lt. intros H0. pose proof (half_rest t). pose proof (rest_bounds t).
  assert (sqrt PI * sqrt PI = PI) by (apply sqrt_sqrt; left; apply PI_RGT_0). nra.
Qed.

Lemma half_ge t : 0 <= t -> sqrt PI / 2 * (1 - bell t) <= half t.
Proof.
  intros Ht. assert (S : sqrt PI * sqrt PI = PI) by (apply sqrt_sqrt; left; apply PI_RGT_0).
  assert (0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0.
  assert (0 <= half t) by (apply RInt_ge_0; [assumption|apply bell_int|intros; left; apply exp_pos]).
  assert (B : 0 < bell t <= 1).
  { split; [apply exp_pos|]. rewrite <- exp_0. apply exp_le. pose proof (pow2_ge_0 t). lra. }
  apply Rnot_lt_le. intros L. pose proof (half_rest t). pose proof (rest_bounds t). nra.
Qed.

(** ** The Gaussian law with a standard deviation *)

Section Law.
Variable sigma : R.
Hypothesis Hs : 0 < sigma.

Let u := / (sigma * sqrt 2).

Lemma Hu : 0 < u.
Proof. apply Rinv_0_lt_compat, Rmult_lt_0_compat; [assumption|apply sqrt_lt_R0; lra]. Qed.

Lemma density_pos x : 0 < density sigma x.
Proof.
  apply Rdiv_lt_0_compat; [apply exp_pos|]. apply Rmult_lt_0_compat; [assumption|].
  apply sqrt_lt_R0. pose proof PI_RGT_0. lra.
Qed.

Lemma density_cont x : continuous (density sigma) x.
Proof.
  apply (ex_derive_continuous (V := R_NormedModule)). unfold density. auto_derive.
  assert (0 < sqrt (2 * PI)) by (apply sqrt_lt_R0; pose proof PI_RGT_0; lra).
  repeat split; nra.
Qed.

Lemma density_int a b : ex_RInt (density sigma) a b.
Proof. apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros; apply density_cont. Qed.

Lemma density_RInt a b : RInt (density sigma) a b = (half (u * b) - half (u * a)) / sqrt PI.
Proof.
  assert (0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0.
  assert (0 < sqrt 2) by (apply sqrt_lt_R0; lra).
  apply is_RInt_unique.
  apply (is_RInt_ext (fun x => scal (/ sqrt PI) (scal u (bell (u * x + 0))))).
  - intros x _. unfold scal; simpl; unfold mult; simpl. unfold density, bell, u.
    rewrite sqrt_mult by (pose proof PI_RGT_0; lra).
    replace (- (/ (sigma * sqrt 2) * x + 0) ^ 2) with (- x ^ 2 / (2 * sigma ^ 2)).
    + field. lra.
    + replace (2 * sigma ^ 2) with ((sigma * sqrt 2) ^ 2)
        by (rewrite Rpow_mult_distr, <- (Rsqr_pow2 (sqrt 2)), Rsqr_sqrt; lra).
      field. lra.
  - replace ((half (u * b) - half (u * a)) / sqrt PI)
      with (scal (/ sqrt PI) (half (u * b) - half (u * a)))
      by (unfold scal; simpl; unfold mult; simpl; field; lra).
    apply (is_RInt_scal (V := R_NormedModule)).
    apply (is_RInt_comp_lin (V := R_NormedModule) bell u 0 a b). rewrite !Rplus_0_r.
    replace (half (u * b) - half (u * a)) with (plus (opp (half (u * a))) (half (u * b)))
      by (unfold plus, opp; simpl; ring).
    apply (is_RInt_Chasles (V := R_NormedModule)) with 0.
    + apply (is_RInt_swap (V := R_NormedModule)).
      apply (RInt_correct (V := R_CompleteNormedModule)), bell_int.
    + apply (RInt_correct (V := R_CompleteNormedModule)), bell_int.
Qed.

Lemma density_le_1 a b : RInt (density sigma) a b <= 1.
Proof.
  rewrite density_RInt. assert (0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0.
  pose proof (half_lt (u * b)). pose proof (half_lt (- (u * a))) as H1. rewrite half_opp in H1.
  apply Rmult_le_reg_r with (sqrt PI); [assumption|]. unfold Rdiv.
  rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

Lemma density_nearly_1 t : t < 1 -> exists x, forall a b,
  a <= - x -> x <= b -> t < RInt (density sigma) a b.
Proof.
  intros Ht. assert (0 < sqrt PI) by apply sqrt_lt_R0, PI_RGT_0.
  set (m := Rmax (- ln (1 - t) + 1) 1).
  assert (M : - ln (1 - t) < m /\ 1 <= m).
  { pose proof (Rmax_l (- ln (1 - t) + 1) 1). pose proof (Rmax_r (- ln (1 - t) + 1) 1).
    unfold m. lra. }
  pose proof Hu as U. exists (m / u). intros a b Ha Hb.
  assert (G : forall y, m <= y -> sqrt PI / 2 * t < half y).
  { intros y Hy. apply Rlt_le_trans with (2 := half_ge y ltac:(lra)).
    apply Rmult_lt_compat_l; [lra|]. apply Rlt_Rminus in Ht.
    assert (bell y < 1 - t); [|lra]. unfold bell.
    rewrite <- (exp_ln (1 - t)) by assumption. apply exp_increasing. nra. }
  assert (E : m / u * u = m) by (field; lra).
  rewrite density_RInt. pose proof (G (u * b) ltac:(nra)).
  pose proof (G (- (u * a)) ltac:(nra)) as H1. rewrite half_opp in H1.
  apply Rmult_lt_reg_r with (sqrt PI); [assumption|]. unfold Rdiv.
  rewrite (Rmult_assoc (_ - _)), Rinv_l by lra. lra.
Qed.

Lemma shifted_cont m x : continuous (fun x => density sigma (x - m)) x.
Proof.
  apply (continuous_comp (fun x => x - m) (density sigma)); [|apply density_cont].
  apply (ex_derive_continuous (V := R_NormedModule)). auto_derive. trivial.
Qed.

Lemma shifted_int m a b : ex_RInt (fun x => density sigma (x - m)) a b.
Proof. apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros; apply shifted_cont. Qed.

Lemma shifted_RInt m a b :
  RInt (fun x => density sigma (x - m)) a b = RInt (density sigma) (a - m) (b - m).
Proof.
  apply is_RInt_unique. apply (is_RInt_ext (fun x => scal 1 (density sigma (1 * x + - m)))).
  - intros x _. unfold scal; simpl; unfold mult; simpl. rewrite !Rmult_1_l. reflexivity.
  - apply (is_RInt_comp_lin (V := R_NormedModule) (density sigma) 1 (- m) a b).
    rewrite !Rmult_1_l. apply (RInt_correct (V := R_CompleteNormedModule)), density_int.
Qed.

(** v + round(sigma Z) = round(v + sigma Z). *)
Lemma noise_shift o v :
  noise sigma (o - v)%Z
  = RInt (fun x => density sigma (x - IZR v)) (IZR o - 1 / 2) (IZR o + 1 / 2).
Proof. rewrite shifted_RInt. unfold noise. rewrite minus_IZR. f_equal; ring. Qed.
End Law.

(** ** Cells *)

Definition cell (f : R -> R) : law Z := fun k => RInt f (IZR k - 1 / 2) (IZR k + 1 / 2).

Fixpoint run (a : Z) (n : nat) : list Z :=
  match n with O => [] | S n => a :: run (a + 1) n end.

Lemma run_In a n k : In k (run a n) <-> (a <= k < a + Z.of_nat n)%Z.
Proof.
  revert a. induction n as [|n IH]; intros a; simpl run; [simpl; lia|].
  simpl In. rewrite IH. lia.
Qed.

Lemma run_NoDup a n : NoDup (run a n).
Proof.
  revert a. induction n as [|n IH]; intros a; simpl; constructor; auto.
  rewrite run_In. lia.
Qed.

Lemma cells_sum f a n : (forall x, continuous f x) ->
  mass (cell f) (run a n) = RInt f (IZR a - 1 / 2) (IZR a + INR n - 1 / 2).
Proof.
  intros C. assert (I : forall x y, ex_RInt f x y)
    by (intros; apply (ex_RInt_continuous (V := R_CompleteNormedModule)); auto).
  revert a. induction n as [|n IH]; intros a; simpl run.
  - simpl INR. rewrite Rplus_0_r. symmetry. apply (RInt_point (V := R_CompleteNormedModule)).
  - rewrite mass_cons, IH, S_INR, plus_IZR. unfold cell.
    replace (IZR a + 1 / 2) with (IZR a + 1 - 1 / 2) by field.
    replace (IZR a + (INR n + 1) - 1 / 2) with (IZR a + 1 + INR n - 1 / 2) by ring.
    apply (RInt_Chasles (V := R_CompleteNormedModule)); apply I.
Qed.

Definition middle n := run (- Z.of_nat n) (2 * n + 1).

Lemma middle_incl s : exists n, forall n', (n <= n')%nat -> incl s (middle n').
Proof.
  induction s as [|k s (n & H)]; [exists O; easy|].
  exists (Nat.max n (Z.abs_nat k)). intros n' L l [<-|Hl].
  - apply run_In. lia.
  - apply H; [lia|assumption].
Qed.

Lemma cells_le f s : (forall x, continuous f x) -> (forall x, 0 <= f x) -> NoDup s ->
  exists n, forall n', (n <= n')%nat ->
    mass (cell f) s <= RInt f (- INR n' - 1 / 2) (INR n' + 1 / 2).
Proof.
  intros C P Hs. destruct (middle_incl s) as (n & H). exists n. intros n' L.
  apply Rle_trans with (mass (cell f) (middle n')).
  - apply mass_incl; auto. intros k. apply RInt_ge_0; [lra| |auto].
    apply (ex_RInt_continuous (V := R_CompleteNormedModule)). auto.
  - unfold middle. rewrite cells_sum by assumption.
    rewrite opp_IZR, <- INR_IZR_INZ, plus_INR, mult_INR. right. f_equal. simpl. field.
Qed.

Lemma noise_law sigma : 0 < sigma -> is_law (noise sigma).
Proof.
  intros Hs. split; [|split].
  - intros k. apply RInt_ge_0; [lra|now apply density_int|].
    intros x _. left. now apply density_pos.
  - intros s N. destruct (cells_le (density sigma) s) as (n & H); auto.
    + intros x. now apply density_cont.
    + intros x. left. now apply density_pos.
    + apply Rle_trans with (1 := H n ltac:(lia)). now apply density_le_1.
  - intros t Ht. destruct (density_nearly_1 sigma Hs t Ht) as (x & H).
    destruct (nfloor_ex (Rabs x) (Rabs_pos x)) as (n & _ & Hn).
    exists (middle (S n)). split; [apply run_NoDup|].
    change (noise sigma) with (cell (density sigma)). unfold middle. rewrite cells_sum.
    2: intros; now apply density_cont.
    rewrite opp_IZR, <- INR_IZR_INZ, plus_INR, mult_INR, S_INR. pose proof (Rle_abs x).
    apply H; simpl; lra.
Qed.

Lemma shifted_law sigma v : 0 < sigma -> is_law (fun o => noise sigma (o - v)%Z).
Proof.
  intros Hs. destruct (noise_law sigma Hs) as (A & B & C). split; [auto|split].
  - intros s N. rewrite <- (mass_map (noise sigma) (fun o => o - v)%Z). apply B.
    apply Injective_map_NoDup; [|assumption]. intros x y. lia.
  - intros t Ht. destruct (C t Ht) as (s & N & H). exists (map (fun k => k + v)%Z s). split.
    + apply Injective_map_NoDup; [|assumption]. intros x y. lia.
    + rewrite mass_map. rewrite (mass_ext _ (noise sigma)); [assumption|].
      intros k _. f_equal. ring.
Qed.

(** ** Rounding is post-processing: Hoelder's inequality on each cell, by tangents *)

Lemma tangent alpha s p q : 1 < alpha -> 0 < s -> 0 < p -> 0 < q ->
  alpha * Rpower s (alpha - 1) * p - (alpha - 1) * Rpower s alpha * q
  <= Rpower p alpha * Rpower q (1 - alpha).
Proof.
  intros Ha Hs Hp Hq.
  assert (0 < p / q) by (now apply Rdiv_lt_0_compat).
  assert (0 < p / q / s) by (now apply Rdiv_lt_0_compat).
  pose proof (bernoulli (p / q / s) alpha ltac:(lra) Ha) as B.
  assert (E : Rpower p alpha * Rpower q (1 - alpha)
    = q * Rpower s alpha * Rpower (p / q / s) alpha).
  { unfold Rpower. rewrite !ln_div by lra. rewrite <- (exp_ln q Hq) at 2.
    rewrite <- !exp_plus. f_equal. ring. }
  assert (S : Rpower s alpha = Rpower s (alpha - 1) * s).
  { rewrite <- (Rpower_1 s Hs) at 3. rewrite <- Rpower_plus. f_equal. ring. }
  rewrite E.
  apply Rle_trans with (q * Rpower s alpha * (1 + alpha * (p / q / s - 1))).
  - right. rewrite S. field. lra.
  - apply Rmult_le_compat_l; [|assumption].
    apply Rmult_le_pos; [lra|left; apply exp_pos].
Qed.

Lemma tangent_eq alpha p q : 0 < p -> 0 < q ->
  alpha * Rpower (p / q) (alpha - 1) * p - (alpha - 1) * Rpower (p / q) alpha * q
  = Rpower p alpha * Rpower q (1 - alpha).
Proof.
  intros Hp Hq. assert (0 < p / q) by (now apply Rdiv_lt_0_compat).
  assert (S : Rpower (p / q) alpha = Rpower (p / q) (alpha - 1) * (p / q)).
  { rewrite <- (Rpower_1 (p / q)) at 3 by assumption. rewrite <- Rpower_plus. f_equal. ring. }
  assert (E : Rpower p alpha * Rpower q (1 - alpha) = q * Rpower (p / q) alpha).
  { unfold Rpower. rewrite ln_div by lra. rewrite <- (exp_ln q Hq) at 2.
    rewrite <- !exp_plus. f_equal. ring. }
  rewrite E, S. field. lra.
Qed.

Lemma hoelder alpha (f g h : R -> R) a b : 1 < alpha -> a < b ->
  (forall x, 0 < f x) -> (forall x, 0 < g x) ->
  (forall x, continuous f x) -> (forall x, continuous g x) -> (forall x, continuous h x) ->
  (forall x, Rpower (f x) alpha * Rpower (g x) (1 - alpha) = h x) ->
  Rpower (RInt f a b) alpha * Rpower (RInt g a b) (1 - alpha) <= RInt h a b.
Proof.
  intros Ha Hab F G Cf Cg Ch H.
  assert (P : 0 < RInt f a b) by (apply RInt_gt_0; auto).
  assert (Q : 0 < RInt g a b) by (apply RInt_gt_0; auto).
  assert (I : forall k : R -> R, (forall x, continuous k x) -> is_RInt k a b (RInt k a b)).
  { intros k C. apply (RInt_correct (V := R_CompleteNormedModule)).
    apply (ex_RInt_continuous (V := R_CompleteNormedModule)). auto. }
  rewrite <- tangent_eq by assumption. set (s := RInt f a b / RInt g a b).
  assert (0 < s) by (now apply Rdiv_lt_0_compat).
  apply (is_RInt_le (fun x => minus (scal (alpha * Rpower s (alpha - 1)) (f x))
                                    (scal ((alpha - 1) * Rpower s alpha) (g x))) h a b); [lra| | |].
  - apply (is_RInt_minus (V := R_NormedModule));
      apply (is_RInt_scal (V := R_NormedModule)); now apply I.
  - now apply I.
  - intros x _. rewrite <- H. now apply tangent.
Qed.

(** ** The completed square, and what a coordinate costs *)

Lemma square sigma alpha v w x : 0 < sigma ->
  Rpower (density sigma (x - v)) alpha * Rpower (density sigma (x - w)) (1 - alpha)
  = exp (alpha * (alpha - 1) * ((v - w) / sigma) ^ 2 / 2)
    * density sigma (x - (alpha * v + (1 - alpha) * w)).
Proof.
  intros Hs. unfold density, Rpower.
  assert (0 < sigma * sqrt (2 * PI)).
  { apply Rmult_lt_0_compat; [assumption|]. apply sqrt_lt_R0. pose proof PI_RGT_0. lra. }
  rewrite !ln_div, !ln_exp by (try apply exp_pos; assumption). unfold Rdiv at 5.
  rewrite <- (exp_ln (/ (sigma * sqrt (2 * PI)))) by (now apply Rinv_0_lt_compat).
  rewrite ln_Rinv by assumption. rewrite <- !exp_plus. f_equal. field. lra.
Qed.

Lemma coordinate sigma alpha v w : 0 < sigma -> 1 < alpha ->
  renyi alpha (exp (alpha * (alpha - 1) * ((IZR (v - w) / sigma) ^ 2 / 2)))
    (fun o => noise sigma (o - v)%Z) (fun o => noise sigma (o - w)%Z).
Proof.
  intros Hs Ha.
  assert (P : forall k, 0 < noise sigma k).
  { intros k. apply RInt_gt_0; [lra| |]; intros; [now apply density_pos|now apply density_cont]. }
  split; [intros a E; pose proof (P (a - w)%Z); lra|]. intros s N.
  set (m := alpha * IZR v + (1 - alpha) * IZR w).
  set (c := exp (alpha * (alpha - 1) * ((IZR (v - w) / sigma) ^ 2 / 2))).
  set (h := fun x => c * density sigma (x - m)).
  assert (C : forall x, continuous h x).
  { intros x. apply (continuous_scal_r c (fun x => density sigma (x - m)) x).
    now apply shifted_cont. }
  assert (0 < c) by apply exp_pos.
  destruct (cells_le h s) as (n & Hn); auto.
  { intros x. apply Rmult_le_pos; [lra|]. left. now apply density_pos. }
  apply Rle_trans with (mass (cell h) s).
  - apply mass_le. intros k _. unfold renyi_term.
    destruct Req_EM_T as [E|_]; [pose proof (P (k - v)%Z); lra|].
    rewrite !noise_shift by assumption. apply hoelder; auto; try lra.
    + intros; now apply density_pos.
    + intros; now apply density_pos.
    + intros; now apply shifted_cont.
    + intros; now apply shifted_cont.
    + intros x. unfold h, c, m. rewrite square by assumption. rewrite minus_IZR.
      do 2 f_equal. field. lra.
  - apply Rle_trans with (1 := Hn n ltac:(lia)). unfold h.
    rewrite (RInt_scal (V := R_CompleteNormedModule) (fun x => density sigma (x - m)))
      by (now apply shifted_int).
    rewrite shifted_RInt by assumption. unfold scal; simpl; unfold mult; simpl.
    pose proof (density_le_1 sigma Hs (- INR n - 1 / 2 - m) (INR n + 1 / 2 - m)). nra.
Qed.

(** ** A vector *)

Lemma noisy_law sigmas v : List.Forall (Rlt 0) sigmas -> is_law (noisy sigmas v).
Proof.
  intros H. revert v. induction H as [|sigma sigmas Hs _ IH]; intros v; [apply nothing_law|].
  destruct v as [|k v]; [apply nothing_law|]. simpl. apply followed_law; [now apply shifted_law|auto].
Qed.

Lemma noisy_renyi alpha sigmas v w : 1 < alpha -> List.Forall (Rlt 0) sigmas -> length v = length w ->
  renyi alpha (exp (alpha * (alpha - 1) * (distance2 sigmas v w / 2)))
    (noisy sigmas v) (noisy sigmas w).
Proof.
  intros Ha H. revert v w. induction H as [|sigma sigmas Hs Hss IH]; intros v w L; simpl.
  { apply renyi_weaken with 1; [|apply nothing_renyi]. right. rewrite <- exp_0. f_equal. field. }
  destruct v as [|k v], w as [|l w]; try easy.
  - apply renyi_weaken with 1; [|apply nothing_renyi]. right. rewrite <- exp_0. f_equal. field.
  - replace (alpha * (alpha - 1) * (((IZR (k - l) / sigma) * ((IZR (k - l) / sigma) * 1)
               + distance2 sigmas v w) / 2))
      with (alpha * (alpha - 1) * ((IZR (k - l) / sigma) ^ 2 / 2)
            + alpha * (alpha - 1) * (distance2 sigmas v w / 2)) by (simpl; field; lra).
    rewrite exp_plus. injection L as L. apply followed_renyi; auto.
    + now apply shifted_law.
    + now apply shifted_law.
    + intros _. now apply noisy_law.
    + intros _. now apply noisy_law.
    + left. apply exp_pos.
    + now apply coordinate.
Qed.

(** Noise of sigma_i >= s_i / sqrt(2 rho), for neighbors that are 1 apart in the scales s. *)
Lemma distance2_scale rho s sigmas v w :
  0 < rho -> Forall2 (fun s sigma => 0 < s /\ s / sqrt (2 * rho) <= sigma) s sigmas ->
  distance2 sigmas v w <= 2 * rho * distance2 s v w.
Proof.
  intros Hr H. assert (R0 : 0 < sqrt (2 * rho)) by (apply sqrt_lt_R0; lra).
  assert (R2 : sqrt (2 * rho) ^ 2 = 2 * rho) by (rewrite <- Rsqr_pow2, Rsqr_sqrt; lra).
  revert v w. induction H as [|s1 sigma s sigmas (H1 & H2) _ IH]; intros v w; simpl; [lra|].
  destruct v as [|k v]; [lra|]. destruct w as [|l w]; [lra|].
  specialize (IH v w).
  assert (0 < s1 / sqrt (2 * rho)) by (now apply Rdiv_lt_0_compat).
  assert ((IZR (k - l) / sigma) ^ 2 <= 2 * rho * (IZR (k - l) / s1) ^ 2); [|simpl in *; lra].
  rewrite <- R2, <- Rpow_mult_distr.
  replace (sqrt (2 * rho) * (IZR (k - l) / s1)) with (IZR (k - l) / (s1 / sqrt (2 * rho)))
    by (field; lra).
  rewrite <- (pow2_abs (IZR (k - l) / sigma)), <- (pow2_abs (IZR (k - l) / (s1 / _))).
  apply pow_incr. split; [apply Rabs_pos|].
  unfold Rdiv. rewrite !Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos|].
  rewrite !Rabs_right; try (left; apply Rinv_0_lt_compat; lra).
  now apply Rinv_le_contravar.
Qed.

Lemma positive_scales rho s sigmas : 0 < rho ->
  Forall2 (fun s sigma => 0 < s /\ s / sqrt (2 * rho) <= sigma) s sigmas ->
  List.Forall (Rlt 0) sigmas.
Proof.
  intros Hr H. induction H as [|s1 sigma s sigmas (H1 & H2) _ IH]; constructor; auto.
  apply Rlt_le_trans with (2 := H2). apply Rdiv_lt_0_compat; [|apply sqrt_lt_R0]; lra.
Qed.

Theorem gaussian {D} (near : D -> D -> Prop) rho s sigmas (q : D -> list Z) :
  0 < rho -> Forall2 (fun s sigma => 0 < s /\ s / sqrt (2 * rho) <= sigma) s sigmas ->
  (forall x x', near x x' -> length (q x) = length (q x') /\ distance2 s (q x) (q x') <= 1) ->
  zcdp near rho (fun x => noisy sigmas (q x)).
Proof.
  intros Hr H Hq. pose proof (positive_scales rho s sigmas Hr H) as P. split.
  - intros x. now apply noisy_law.
  - intros x x' Hx alpha Ha. destruct (Hq x x' Hx) as (L & Q).
    apply renyi_weaken with (2 := noisy_renyi alpha sigmas _ _ Ha P L). apply exp_le.
    pose proof (distance2_scale rho s sigmas (q x) (q x') Hr H).
    assert (2 * rho * distance2 s (q x) (q x') <= 2 * rho * 1) by (apply Rmult_le_compat_l; lra).
    apply Rmult_le_compat_l; [apply Rmult_le_pos|]; lra.
Qed.

Theorem gaussian_is_gaussian {D} (near : D -> D -> Prop) rho s sigmas (q : D -> list Z) :
  0 < rho -> Forall2 (fun s sigma => 0 < s /\ s / sqrt (2 * rho) <= sigma) s sigmas ->
  (forall x x', near x x' -> length (q x) = length (q x') /\ distance2 s (q x) (q x') <= 1) ->
  gaussian_release near rho (fun x => noisy sigmas (q x)).
Proof.
  intros Hr H Hq. exists sigmas, q. split; [now apply (positive_scales rho s)|].
  split; [easy|]. intros x x' Hx. destruct (Hq x x' Hx) as (L & Q). split; [assumption|].
  pose proof (distance2_scale rho s sigmas (q x) (q x') Hr H).
  assert (2 * rho * distance2 s (q x) (q x') <= 2 * rho * 1) by (apply Rmult_le_compat_l; lra). lra.
Qed.
