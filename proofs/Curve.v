(** The exact curve of Gaussian releases, for fits whose releases depend on each other. *)

From Coq Require Import Reals List ZArith Lra Lia.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Raux.
From ReleasePath Require Import Constants Privacy Noise Laws Gaussian Sampler Series Bounds.
Import ListNotations.
Open Scope R_scope.

(** ** The distribution function *)

Lemma Phi_derive x : is_derive Phi x (density 1 x).
Proof.
  unfold Phi. evar_last.
  - apply (is_derive_minus (fun _ => 1) tail); [apply is_derive_constant|apply is_derive_tail].
  - flat. ring.
Qed.

Lemma Phi_cont x : continuous Phi x.
Proof. apply (ex_derive_continuous (V := R_NormedModule)). eexists. apply Phi_derive. Qed.

Lemma Phi_le x y : x <= y -> Phi x <= Phi y.
Proof. intros [H| ->]; unfold Phi; [apply tail_decreasing in H|]; lra. Qed.

Lemma Phi_opp x : Phi (- x) = 1 - Phi x.
Proof. unfold Phi. rewrite tail_opp. ring. Qed.

Lemma Phi_range x : 0 < Phi x < 1.
Proof. unfold Phi. pose proof (tail_pos x). pose proof (tail_pos (- x)) as N. rewrite tail_opp in N. lra. Qed.

Lemma Phi_small t : 0 < t -> exists x, forall y, y <= x -> Phi y < t.
Proof.
  intros Ht. destruct (tail_small t Ht) as (x & _ & H). exists (- x). intros y Hy.
  apply Rle_lt_trans with (Phi (- x)); [now apply Phi_le|]. unfold Phi. rewrite tail_opp. lra.
Qed.

(** ** The best test between two Gaussian laws (Neyman and Pearson) *)

Lemma best_threshold mu t : 0 < mu -> 0 < t ->
  forall c, Phi c - t * Phi (c - mu) <= curve mu t.
Proof.
  intros Hm Ht c. unfold curve. set (c0 := mu / 2 - ln t / mu).
  replace (- mu / 2 - ln t / mu) with (c0 - mu) by (unfold c0; field; lra).
  set (G := fun c => Phi c - t * Phi (c - mu)).
  assert (D : forall x, is_derive G x (density 1 x - t * density 1 (x - mu))).
  { intros x. unfold G. evar_last.
    - apply (is_derive_minus Phi (fun c => t * Phi (c - mu))); [apply Phi_derive|].
      apply (is_derive_scal (fun c => Phi (c - mu))).
      apply (is_derive_comp Phi (fun c => c - mu)); [apply Phi_derive|].
      auto_derive; [trivial|reflexivity].
    - flat. ring. }
  assert (S : forall x, density 1 x - t * density 1 (x - mu)
                = density 1 x * (1 - exp (mu * (x - c0)))).
  { intros x. assert (E : t * density 1 (x - mu) = density 1 x * exp (mu * (x - c0))); [|rewrite E; ring].
    unfold density, Rdiv. rewrite <- (exp_ln t Ht) at 1.
    replace (exp (ln t) * (exp (- (x - mu) ^ 2 * / (2 * 1 ^ 2)) * / (1 * sqrt (2 * PI))))
      with (exp (ln t) * exp (- (x - mu) ^ 2 * / (2 * 1 ^ 2)) * / (1 * sqrt (2 * PI))) by ring.
    replace (exp (- x ^ 2 * / (2 * 1 ^ 2)) * / (1 * sqrt (2 * PI)) * exp (mu * (x - c0)))
      with (exp (- x ^ 2 * / (2 * 1 ^ 2)) * exp (mu * (x - c0)) * / (1 * sqrt (2 * PI))) by ring.
    rewrite <- !exp_plus. do 2 f_equal. unfold c0. field. lra. }
  assert (P : forall x, 0 < density 1 x) by (intros; apply density_pos; lra).
  assert (C : forall x, continuity_pt G x).
  { intros x. apply continuity_pt_filterlim. apply (ex_derive_continuous (V := R_NormedModule)).
    eexists. apply D. }
  change (G c <= G c0).
  destruct (MVT_gen G c c0 (fun x => density 1 x - t * density 1 (x - mu))) as (x & X & E); auto.
  rewrite S in E. specialize (P x).
  assert (0 <= density 1 x * (1 - exp (mu * (x - c0))) * (c0 - c)); [|lra].
  destruct (Rle_dec c c0) as [L|L].
  - rewrite Rmin_left, Rmax_right in X by lra.
    assert (exp (mu * (x - c0)) <= exp 0) by (apply exp_le; nra). rewrite exp_0 in *.
    apply Rmult_le_pos; [apply Rmult_le_pos|]; lra.
  - rewrite Rmin_right, Rmax_left in X by lra.
    assert (exp 0 <= exp (mu * (x - c0))) by (apply exp_le; nra). rewrite exp_0 in *.
    replace (density 1 x * (1 - exp (mu * (x - c0))) * (c0 - c))
      with (density 1 x * (exp (mu * (x - c0)) - 1) * (c - c0)) by ring.
    apply Rmult_le_pos; [apply Rmult_le_pos|]; lra.
Qed.

(** A test gives y to one law and z to the other: below a threshold, never, or always. *)
Definition test (mu y z : R) : Prop :=
  (y = 0 /\ z = 0) \/ (y = 1 /\ z = 1) \/ exists c, y = Phi c /\ z = Phi (c - mu).

Lemma best_test mu t y z : 0 < mu -> 0 < t -> test mu y z -> y - t * z <= curve mu t.
Proof.
  intros Hm Ht [(-> & ->)|[(-> & ->)|(c & -> & ->)]].
  - apply Rnot_lt_le. intros L. rewrite Rmult_0_r, Rminus_0_r in L.
    destruct (Phi_small (- curve mu t / t)) as (x & X); [apply Rdiv_lt_0_compat; lra|].
    pose proof (best_threshold mu t Hm Ht (x + mu)) as B. pose proof (Phi_range (x + mu)).
    replace (x + mu - mu) with x in B by ring. specialize (X x (Rle_refl x)).
    assert (t * Phi x < t * (- curve mu t / t)) by (apply Rmult_lt_compat_l; assumption).
    replace (t * (- curve mu t / t)) with (- curve mu t) in * by (field; lra). lra.
  - apply Rnot_lt_le. intros L.
    destruct (Phi_small (1 - t * 1 - curve mu t)) as (x & X); [lra|].
    pose proof (best_threshold mu t Hm Ht (- x)) as B. rewrite Phi_opp in B.
    specialize (X x (Rle_refl x)). pose proof (Phi_range (- x - mu)).
    assert (t * Phi (- x - mu) <= t * 1) by (apply Rmult_le_compat_l; lra). lra.
  - now apply best_threshold.
Qed.

Definition threshold mu t := mu / 2 - ln t / mu.

Lemma curve_eq mu t : 0 < mu -> curve mu t = Phi (threshold mu t) - t * Phi (threshold mu t - mu).
Proof. intros Hm. unfold curve, threshold. do 3 f_equal. field. lra. Qed.

Lemma curve_le mu mu' t : 0 < mu <= mu' -> 0 < t -> curve mu t <= curve mu' t.
Proof.
  intros (Hm & H) Ht. set (c := mu / 2 - ln t / mu).
  apply Rle_trans with (Phi c - t * Phi (c - mu')).
  - unfold curve. replace (- mu / 2 - ln t / mu) with (c - mu) by (unfold c; field; lra). fold c.
    assert (t * Phi (c - mu') <= t * Phi (c - mu)); [|lra].
    apply Rmult_le_compat_l; [lra|]. apply Phi_le. lra.
  - apply best_threshold; lra.
Qed.

Lemma test_range mu y z : test mu y z -> 0 <= y <= 1 /\ 0 <= z <= 1.
Proof.
  intros [(-> & ->)|[(-> & ->)|(c & -> & ->)]]; try lra.
  pose proof (Phi_range c). pose proof (Phi_range (c - mu)). lra.
Qed.

(** ** A Gaussian mean of the distribution function *)

Definition mixed a b x := density 1 x * Phi (a + b * x).

Lemma mixed_cont a b x : continuous (mixed a b) x.
Proof.
  apply (continuous_mult (K := R_AbsRing) (density 1)); [apply density_cont|].
  apply (continuous_comp (fun x => a + b * x) Phi); [|apply Phi_cont].
  apply (ex_derive_continuous (V := R_NormedModule)). auto_derive. trivial.
Qed.

Lemma mixed_int a b l r : ex_RInt (mixed a b) l r.
Proof. apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros; apply mixed_cont. Qed.

Lemma mixed_derive b l r a :
  is_derive (fun a => RInt (mixed a b) l r) a (RInt (fun x => density 1 x * density 1 (a + b * x)) l r).
Proof.
  assert (D : forall a x, is_derive (fun a => mixed a b x) a (density 1 x * density 1 (a + b * x))).
  { intros c x. unfold mixed. evar_last.
    - apply (is_derive_scal (fun a => Phi (a + b * x))).
      apply (is_derive_comp Phi (fun a => a + b * x)); [apply Phi_derive|].
      auto_derive; [trivial|reflexivity].
    - flat. ring. }
  evar_last.
  - apply (is_derive_RInt_param (fun a x => mixed a b x) l r a).
    + apply filter_forall. intros y x _. eexists. apply D.
    + intros x _.
      apply (continuity_2d_pt_ext (fun u v => density 1 v * density 1 (u + b * v))).
      { intros c v. symmetry. apply is_derive_unique, D. }
      apply continuity_2d_pt_mult.
      * apply (continuity_1d_2d_pt_comp (density 1) (fun u v => v)).
        -- apply continuity_pt_filterlim, density_cont.
        -- apply continuity_2d_pt_id2.
      * apply (continuity_1d_2d_pt_comp (density 1) (fun u v => u + b * v)).
        -- apply continuity_pt_filterlim, density_cont.
        -- apply continuity_2d_pt_plus; [apply continuity_2d_pt_id1|].
           apply continuity_2d_pt_mult; [apply continuity_2d_pt_const|apply continuity_2d_pt_id2].
    + apply filter_forall. intros y. apply mixed_int.
  - apply RInt_ext. intros x _. apply is_derive_unique, D.
Qed.

Lemma completed a b x : let r := sqrt (1 + b ^ 2) in
  density 1 x * density 1 (a + b * x) = density 1 (a / r) * density 1 (r * x + a * b / r).
Proof.
  intros r. assert (R2 : r * r = 1 + b ^ 2) by (apply sqrt_sqrt; pose proof (pow2_ge_0 b); lra).
  assert (R0 : 0 < r) by (apply sqrt_lt_R0; pose proof (pow2_ge_0 b); lra).
  unfold density, Rdiv. set (k := / (1 * sqrt (2 * PI))).
  replace (exp (- x ^ 2 * / (2 * 1 ^ 2)) * k * (exp (- (a + b * x) ^ 2 * / (2 * 1 ^ 2)) * k))
    with (exp (- x ^ 2 * / (2 * 1 ^ 2)) * exp (- (a + b * x) ^ 2 * / (2 * 1 ^ 2)) * (k * k)) by ring.
  replace (exp (- (a * / r) ^ 2 * / (2 * 1 ^ 2)) * k
      * (exp (- (r * x + a * b * / r) ^ 2 * / (2 * 1 ^ 2)) * k))
    with (exp (- (a * / r) ^ 2 * / (2 * 1 ^ 2))
      * exp (- (r * x + a * b * / r) ^ 2 * / (2 * 1 ^ 2)) * (k * k)) by ring.
  rewrite <- !exp_plus. do 2 f_equal.
  apply Rmult_eq_reg_r with (2 * (r * r)); [|nra].
  replace ((- (a * / r) ^ 2 * / (2 * 1 ^ 2) + - (r * x + a * b * / r) ^ 2 * / (2 * 1 ^ 2)) * (2 * (r * r)))
    with (- (a ^ 2 + (r * r * x + a * b) ^ 2)) by (field; lra).
  rewrite R2. field.
Qed.

Lemma mixed_le a b l r : l <= r -> RInt (mixed a b) l r <= Phi (a / sqrt (1 + b ^ 2)).
Proof.
  intros Hlr. set (q := sqrt (1 + b ^ 2)).
  assert (Q0 : 0 < q) by (apply sqrt_lt_R0; pose proof (pow2_ge_0 b); lra).
  set (F := fun a => Phi (a / q) - RInt (mixed a b) l r).
  assert (D : forall x, is_derive F x
    (density 1 (x / q) / q - RInt (fun y => density 1 y * density 1 (x + b * y)) l r)).
  { intros x. unfold F. evar_last.
    - apply (is_derive_minus (fun a => Phi (a / q)) (fun a => RInt (mixed a b) l r));
        [|apply mixed_derive].
      apply (is_derive_comp Phi (fun a => a / q)); [apply Phi_derive|].
      auto_derive; [trivial|reflexivity].
    - flat. field. lra. }
  assert (N : forall x, 0 <= density 1 (x / q) / q
    - RInt (fun y => density 1 y * density 1 (x + b * y)) l r).
  { intros x. rewrite (RInt_ext _ (fun y => scal (density 1 (x / q) / q)
      (scal q (density 1 (q * y + x * b / q))))).
    - assert (E : is_RInt (fun y => scal (density 1 (x / q) / q)
          (scal q (density 1 (q * y + x * b / q)))) l r
        (scal (density 1 (x / q) / q) (RInt (density 1) (q * l + x * b / q) (q * r + x * b / q)))).
      { apply (is_RInt_scal (V := R_NormedModule)).
        apply (is_RInt_comp_lin (V := R_NormedModule) (density 1) q (x * b / q) l r).
        apply (RInt_correct (V := R_CompleteNormedModule)), density_int. }
      rewrite (is_RInt_unique _ _ _ _ E). unfold scal; simpl; unfold mult; simpl.
      pose proof (density_le_1 1 ltac:(lra) (q * l + x * b / q) (q * r + x * b / q)).
      assert (0 < density 1 (x / q) / q)
        by (apply Rdiv_lt_0_compat; [apply density_pos|]; lra). nra.
    - intros y _. rewrite (completed x b y). fold q. flat. field. lra. }
  assert (M : forall x y, x <= y -> F x <= F y).
  { intros x y Hxy. destruct (MVT_gen F x y (fun x => density 1 (x / q) / q
      - RInt (fun y => density 1 y * density 1 (x + b * y)) l r)) as (z & _ & E); auto.
    - intros z _. apply continuity_pt_filterlim.
      apply (ex_derive_continuous (V := R_NormedModule)). eexists. apply D.
    - specialize (N z). assert (0 <= (density 1 (z / q) / q
        - RInt (fun y => density 1 y * density 1 (z + b * y)) l r) * (y - x))
        by (apply Rmult_le_pos; lra). lra. }
  assert (G : 0 <= F a); [|unfold F in G; lra].
  apply Rnot_lt_le. intros L.
  destruct (Phi_small (- F a)) as (x & X); [lra|].
  set (k := Rmax (Rabs l) (Rabs r)). set (a0 := Rmin a (x - Rabs b * k)).
  assert (B : RInt (mixed a0 b) l r < - F a).
  { apply Rle_lt_trans with (RInt (fun y => scal (Phi x) (density 1 y)) l r).
    - apply RInt_le; [assumption|apply mixed_int| |].
      + apply (ex_RInt_scal (V := R_NormedModule)), density_int.
      + intros y Hy. unfold mixed, scal; simpl; unfold mult; simpl. rewrite Rmult_comm.
        apply Rmult_le_compat_r; [left; apply density_pos; lra|]. apply Phi_le.
        assert (Rabs y <= k).
        { unfold k. apply Rabs_le. pose proof (Rmax_l (Rabs l) (Rabs r)). pose proof (Rmax_r (Rabs l) (Rabs r)).
          pose proof (Rle_abs r). pose proof (Rle_abs (- l)) as Hl. rewrite Rabs_Ropp in Hl. lra. }
        pose proof (Rmin_r a (x - Rabs b * k)). fold a0 in H0.
        assert (b * y <= Rabs b * k); [|lra].
        apply Rle_trans with (Rabs (b * y)); [apply Rle_abs|]. rewrite Rabs_mult.
        apply Rmult_le_compat_l; [apply Rabs_pos|assumption].
    - rewrite (RInt_scal (V := R_CompleteNormedModule)) by apply density_int.
      unfold scal; simpl; unfold mult; simpl. pose proof (density_le_1 1 ltac:(lra) l r).
      pose proof (Phi_range x). specialize (X x (Rle_refl x)).
      apply Rle_lt_trans with (Phi x * 1); [apply Rmult_le_compat_l; lra|lra]. }
  pose proof (M a0 a (Rmin_l _ _)) as H. unfold F in H at 1. pose proof (Phi_range (a0 / q)). lra.
Qed.

Lemma mixed_ge a b l r : l <= r ->
  Phi (a / sqrt (1 + b ^ 2)) - (1 - RInt (density 1) l r) <= RInt (mixed a b) l r.
Proof.
  intros Hlr. pose proof (mixed_le (- a) (- b) l r Hlr) as U.
  replace ((- b) ^ 2) with (b ^ 2) in U by ring.
  replace (- a / sqrt (1 + b ^ 2)) with (- (a / sqrt (1 + b ^ 2))) in U by (unfold Rdiv; ring).
  rewrite Phi_opp in U.
  assert (E : RInt (mixed (- a) (- b)) l r = RInt (density 1) l r - RInt (mixed a b) l r).
  { apply is_RInt_unique.
    apply (is_RInt_ext (fun x => minus (density 1 x) (mixed a b x))).
    - intros x _. unfold mixed. replace (- a + - b * x) with (- (a + b * x)) by ring.
      rewrite Phi_opp. flat. ring.
    - apply (is_RInt_minus (V := R_NormedModule)); apply (RInt_correct (V := R_CompleteNormedModule));
        [apply density_int|apply mixed_int]. }
  lra.
Qed.

(** The same of a law with another mean and scale. *)
Lemma mixed_scaled sigma v a b l r : 0 < sigma ->
  RInt (fun x => density sigma (x - v) * Phi (a + b * x)) l r
  = RInt (mixed (a + b * v) (b * sigma)) ((l - v) / sigma) ((r - v) / sigma).
Proof.
  intros Hs. assert (S2 : 0 < sqrt (2 * PI)) by (apply sqrt_lt_R0; pose proof PI_RGT_0; lra).
  apply is_RInt_unique.
  apply (is_RInt_ext (fun x => scal (/ sigma) (mixed (a + b * v) (b * sigma) (/ sigma * x + - v / sigma)))).
  - intros x _. unfold mixed, scal; simpl; unfold mult; simpl.
    replace (a + b * v + b * sigma * (/ sigma * x + - v / sigma)) with (a + b * x) by (field; lra).
    rewrite <- Rmult_assoc. f_equal. unfold density.
    replace (- (/ sigma * x + - v / sigma) ^ 2 / (2 * 1 ^ 2)) with (- (x - v) ^ 2 / (2 * sigma ^ 2))
      by (field; lra). field. lra.
  - pose proof (is_RInt_comp_lin (V := R_NormedModule) (mixed (a + b * v) (b * sigma)) (/ sigma)
      (- v / sigma) l r) as H.
    replace (/ sigma * l + - v / sigma) with ((l - v) / sigma) in H by (field; lra).
    replace (/ sigma * r + - v / sigma) with ((r - v) / sigma) in H by (field; lra).
    apply H. apply (RInt_correct (V := R_CompleteNormedModule)), mixed_int.
Qed.

(** ** What a release adds to the curve *)

(** Followed by whatever test tells two laws apart that are mu apart, it is no better than the test of
    laws that are sqrt(m + mu^2) apart. *)
Definition adds {A} (m : R) (p p' : law A) : Prop :=
  (forall a, 0 <= p a /\ 0 <= p' a) /\ (forall a, p' a = 0 -> p a = 0) /\
  forall mu t y z, 0 < mu -> 0 < t -> (forall a, test mu (y a) (z a)) ->
  forall s, NoDup s ->
    mass (fun a => p a * y a - t * (p' a * z a)) s <= curve (sqrt (m + mu ^ 2)) t.

Lemma root_pos m mu : 0 <= m -> 0 < mu -> 0 < sqrt (m + mu ^ 2).
Proof. intros Hm Hmu. apply sqrt_lt_R0. assert (0 < mu ^ 2) by (now apply pow_lt). lra. Qed.

Lemma adds_more {A} m m' (p p' : law A) : 0 <= m <= m' -> adds m p p' -> adds m' p p'.
Proof.
  intros (H0 & H) (P & Z & R). split; [assumption|]. split; [assumption|].
  intros mu t y z Hm Ht T s Hs. apply Rle_trans with (1 := R mu t y z Hm Ht T s Hs).
  apply curve_le; [|assumption]. split; [now apply root_pos|].
  apply sqrt_le_1; pose proof (pow2_ge_0 mu); lra.
Qed.

Lemma nothing_adds {A} : adds 0 (@nothing A) nothing.
Proof.
  split; [|split].
  - intros [|a l]; simpl; lra.
  - easy.
  - intros mu t y z Hm Ht T s Hs. rewrite Rplus_0_l, sqrt_pow2 by lra.
    assert (C : 0 <= curve mu t).
    { pose proof (best_test mu t 0 0 Hm Ht (or_introl (conj eq_refl eq_refl))). lra. }
    set (k := y [] - t * z []).
    assert (K : k <= curve mu t) by (now apply best_test).
    apply Rle_trans with (mass (fun l => Rmax 0 k * nothing l) s).
    + apply mass_le. intros [|a l] _; simpl; [|lra]. fold k. pose proof (Rmax_r 0 k).
      unfold k in *. lra.
    + rewrite mass_scal. pose proof (proj1 (proj2 nothing_law) s Hs) as M.
      pose proof (Rmax_l 0 k). apply Rle_trans with (Rmax 0 k * 1); [apply Rmult_le_compat_l; assumption|].
      rewrite Rmult_1_r. now apply Rmax_lub.
Qed.

Lemma followed_adds {A} m m' (p p' : law A) q q' : 0 <= m -> 0 <= m' ->
  adds m p p' -> (forall a, adds m' (q a) (q' a)) -> adds (m + m') (followed p q) (followed p' q').
Proof.
  intros Hm Hm' (P & Z & R) H. split; [|split].
  - intros [|a l]; simpl; [lra|]. pose proof (P a). destruct (H a) as (Q & _). specialize (Q l).
    split; apply Rmult_le_pos; lra.
  - intros [|a l]; simpl; [easy|]. intros E. destruct (H a) as (_ & Z' & _).
    apply Rmult_integral in E. destruct E as [E|E]; [rewrite (Z a E)|rewrite (Z' l E)]; ring.
  - intros mu t y z Hmu Ht T s Hs. set (nu := sqrt (m' + mu ^ 2)).
    assert (N : 0 < nu) by (now apply root_pos).
    assert (N2 : nu ^ 2 = m' + mu ^ 2).
    { unfold nu. rewrite <- Rsqr_pow2, Rsqr_sqrt; [reflexivity|]. pose proof (pow2_ge_0 mu). lra. }
    (* outcomes that the test would lose on may as well be left out of it *)
    set (f := fun l => followed p q l * y l - t * (followed p' q' l * z l)).
    set (y' := fun l => if Rle_dec 0 (f l) then y l else 0).
    set (z' := fun l => if Rle_dec 0 (f l) then z l else 0).
    set (f' := fun l => followed p q l * y' l - t * (followed p' q' l * z' l)).
    assert (T' : forall l, test mu (y' l) (z' l)).
    { intros l. unfold y', z'. destruct Rle_dec; [apply T|now left]. }
    assert (F : forall l, f l <= f' l /\ 0 <= f' l).
    { intros l. unfold f', y', z'. destruct Rle_dec as [L|L]; fold (f l); [lra|].
      rewrite !Rmult_0_r, Rminus_0_r. lra. }
    apply Rle_trans with (mass f' s); [apply mass_le; intros l _; apply F|].
    clearbody y' z'. clear T.
    (* the best that can be done after a *)
    set (ratio := fun a => t * (p' a / p a)).
    set (Y := fun a => if Req_EM_T (p a) 0 then 0 else Phi (threshold nu (ratio a))).
    set (X := fun a => if Req_EM_T (p a) 0 then 0 else Phi (threshold nu (ratio a) - nu)).
    assert (TY : forall a, test nu (Y a) (X a)).
    { intros a. unfold Y, X. destruct Req_EM_T; [now left|]. right; right. eexists. now split. }
    assert (Inner : forall a tails, NoDup tails ->
      mass (fun l => p a * q a l * y' (a :: l) - t * (p' a * q' a l * z' (a :: l))) tails
      <= p a * Y a - t * (p' a * X a)).
    { intros a tails Ht'. destruct (H a) as (Q & _ & Rq). pose proof (P a) as (P0 & P1).
      unfold Y, X. destruct Req_EM_T as [E|E].
      - rewrite (mass_ext _ (fun l => - (t * p' a) * (q' a l * z' (a :: l)))).
        2: { intros l _. rewrite E. ring. }
        rewrite mass_scal. assert (0 <= mass (fun l => q' a l * z' (a :: l)) tails).
        { apply mass_nonneg. intros l. pose proof (Q l). pose proof (test_range _ _ _ (T' (a :: l))).
          apply Rmult_le_pos; lra. }
        assert (0 <= t * p' a) by (apply Rmult_le_pos; lra).
        assert (0 <= t * p' a * mass (fun l => q' a l * z' (a :: l)) tails)
          by (apply Rmult_le_pos; assumption). lra.
      - assert (0 < p a) by lra.
        assert (0 < p' a) by (destruct P1 as [P1|P1]; [assumption|symmetry in P1; apply Z in P1; lra]).
        assert (Hr : 0 < ratio a) by (apply Rmult_lt_0_compat; [|apply Rdiv_lt_0_compat]; assumption).
        rewrite (mass_ext _ (fun l => p a * (q a l * y' (a :: l) - ratio a * (q' a l * z' (a :: l))))).
        2: { intros l _. unfold ratio. field. lra. }
        rewrite mass_scal.
        pose proof (Rq mu (ratio a) (fun l => y' (a :: l)) (fun l => z' (a :: l)) Hmu Hr
          (fun l => T' (a :: l)) tails Ht') as B. fold nu in B.
        rewrite curve_eq in B by assumption.
        apply Rle_trans with (p a * (Phi (threshold nu (ratio a))
          - ratio a * Phi (threshold nu (ratio a) - nu))); [apply Rmult_le_compat_l; lra|].
        right. unfold ratio at 2. field. lra. }
    destruct (mass_followed f' s) as (heads & tails & Hh & Ht' & M); [apply F| |assumption|].
    { unfold f'. simpl. ring. }
    apply Rle_trans with (1 := M).
    apply Rle_trans with (mass (fun a => p a * Y a - t * (p' a * X a)) heads).
    + apply mass_le. intros a _. now apply Inner.
    + apply Rle_trans with (1 := R nu t Y X N Ht TY heads Hh). right. do 2 f_equal. rewrite N2. ring.
Qed.

(** One coordinate with rounded Gaussian noise. *)
Lemma coordinate_adds sigma v w : 0 < sigma ->
  adds ((IZR (v - w) / sigma) ^ 2) (fun o => noise sigma (o - v)%Z) (fun o => noise sigma (o - w)%Z).
Proof.
  intros Hs. assert (P : forall k, 0 < noise sigma k).
  { intros k. apply RInt_gt_0; [lra| |]; intros; [now apply density_pos|now apply density_cont]. }
  split; [intros a; split; left; apply P|].
  split; [intros a E; pose proof (P (a - w)%Z); lra|].
  intros mu t y z Hmu Ht T s Hd.
  set (m := IZR v). set (n := IZR w). set (d := (m - n) / sigma).
  assert (Ed : IZR (v - w) / sigma = d) by (unfold d, m, n; now rewrite minus_IZR). rewrite Ed.
  set (f := fun x => density sigma (x - m)). set (g := fun x => density sigma (x - n)).
  assert (F : forall x, 0 < f x) by (intros; now apply density_pos).
  assert (G : forall x, 0 < g x) by (intros; now apply density_pos).
  set (b := d / (sigma * mu)).
  set (a := mu / 2 - ln t / mu - (m ^ 2 - n ^ 2) / (2 * sigma ^ 2 * mu)).
  assert (C : forall x, threshold mu (t * (g x / f x)) = a + b * x).
  { intros x. unfold threshold. rewrite ln_mult by (try apply Rdiv_lt_0_compat; auto).
    rewrite ln_div by auto. unfold f, g, density.
    assert (0 < sigma * sqrt (2 * PI)).
    { apply Rmult_lt_0_compat; [assumption|]. apply sqrt_lt_R0. pose proof PI_RGT_0. lra. }
    rewrite !ln_div, !ln_exp by (try apply exp_pos; assumption).
    unfold a, b, d. field. lra. }
  set (h := fun x => f x * Phi (a + b * x) - t * (g x * Phi (a - mu + b * x))).
  assert (Hh : forall x yy zz, test mu yy zz -> f x * yy - t * (g x * zz) <= h x).
  { intros x yy zz Tt. assert (0 < t * (g x / f x)) by (apply Rmult_lt_0_compat; [|apply Rdiv_lt_0_compat]; auto).
    pose proof (best_test mu (t * (g x / f x)) yy zz Hmu H Tt) as B.
    rewrite curve_eq, C in B by assumption. unfold h.
    replace (a - mu + b * x) with (a + b * x - mu) by ring.
    apply (Rmult_le_compat_l (f x)) in B; [|left; apply F]. specialize (F x).
    replace (f x * (yy - t * (g x / f x) * zz)) with (f x * yy - t * (g x * zz)) in B by (field; lra).
    replace (f x * (Phi (a + b * x) - t * (g x / f x) * Phi (a + b * x - mu)))
      with (f x * Phi (a + b * x) - t * (g x * Phi (a + b * x - mu))) in B by (field; lra).
    exact B. }
  assert (H0 : forall x, 0 <= h x).
  { intros x. pose proof (Hh x 0 0 (or_introl (conj eq_refl eq_refl))). lra. }
  assert (Cf : forall m c x, continuous (fun x => density sigma (x - m) * Phi (c + b * x)) x).
  { intros q c x. apply (continuous_mult (K := R_AbsRing) (fun x => density sigma (x - q)));
      [now apply shifted_cont|].
    apply (continuous_comp (fun x => c + b * x) Phi); [|apply Phi_cont].
    apply (ex_derive_continuous (V := R_NormedModule)). auto_derive. trivial. }
  assert (Ch : forall x, continuous h x).
  { intros x. apply (continuous_minus (V := R_NormedModule)); [apply Cf|].
    apply (continuous_scal_r t (fun x => g x * Phi (a - mu + b * x))). apply Cf. }
  set (M := sqrt (d ^ 2 + mu ^ 2)).
  assert (M0 : 0 < M) by (apply root_pos; [apply pow2_ge_0|assumption]).
  assert (M2 : M * M = d ^ 2 + mu ^ 2).
  { apply sqrt_sqrt. pose proof (pow2_ge_0 d). pose proof (pow2_ge_0 mu). lra. }
  assert (Er : sqrt (1 + (b * sigma) ^ 2) = M / mu).
  { rewrite <- (sqrt_square (M / mu)) by (left; now apply Rdiv_lt_0_compat). f_equal.
    replace (M / mu * (M / mu)) with (M * M / (mu * mu)) by (field; lra).
    rewrite M2. unfold b. field. lra. }
  (* the integral of h *)
  assert (I : forall l r, l <= r -> RInt h l r
    <= curve M t + t * (1 - RInt (density 1) ((l - n) / sigma) ((r - n) / sigma))).
  { intros l r Hlr.
    assert (E : RInt h l r = RInt (fun x => f x * Phi (a + b * x)) l r
      - t * RInt (fun x => g x * Phi (a - mu + b * x)) l r).
    { apply is_RInt_unique. apply (is_RInt_minus (V := R_NormedModule)).
      - apply (RInt_correct (V := R_CompleteNormedModule)).
        apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros; apply Cf.
      - apply (is_RInt_scal (V := R_NormedModule) (fun x => g x * Phi (a - mu + b * x))).
        apply (RInt_correct (V := R_CompleteNormedModule)).
        apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros; apply Cf. }
    rewrite E. unfold f, g. rewrite !mixed_scaled by assumption.
    assert (Hq : forall q, (l - q) / sigma <= (r - q) / sigma).
    { intros q. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|lra]. }
    pose proof (mixed_le (a + b * m) (b * sigma) _ _ (Hq m)) as U.
    pose proof (mixed_ge (a - mu + b * n) (b * sigma) _ _ (Hq n)) as L. rewrite Er in U, L.
    replace ((a - mu + b * n) / (M / mu)) with ((a + b * m) / (M / mu) - M) in L.
    2: { apply Rmult_eq_reg_r with (M / mu); [|apply Rgt_not_eq; now apply Rdiv_lt_0_compat].
         replace (((a + b * m) / (M / mu) - M) * (M / mu)) with (a + b * m - M * M / mu) by (field; lra).
         rewrite M2. unfold b, d. field. lra. }
    pose proof (best_threshold M t M0 Ht ((a + b * m) / (M / mu))) as B.
    set (x1 := RInt (mixed (a + b * m) _) _ _) in *. set (x2 := RInt (mixed (a - mu + b * n) _) _ _) in *.
    set (x3 := RInt (density 1) _ _) in *. set (x4 := Phi (_ - M)) in *. nra. }
  (* the sum *)
  destruct (cells_le h s Ch H0 Hd) as (k0 & K).
  apply Rle_trans with (mass (cell h) s).
  - apply mass_le. intros k _. rewrite !noise_shift by assumption. fold m n. unfold cell.
    set (l := IZR k - 1 / 2). set (r := IZR k + 1 / 2).
    apply (is_RInt_le (fun x => minus (scal (y k) (f x)) (scal (t * z k) (g x))) h l r); [unfold l, r; lra| | |].
    + replace (RInt (fun x => density sigma (x - m)) l r * y k
          - t * (RInt (fun x => density sigma (x - n)) l r * z k))
        with (minus (scal (y k) (RInt f l r)) (scal (t * z k) (RInt g l r)))
        by (unfold minus, plus, opp, scal; simpl; unfold mult; simpl; unfold f, g; ring).
      apply (is_RInt_minus (V := R_NormedModule)); apply (is_RInt_scal (V := R_NormedModule));
        apply (RInt_correct (V := R_CompleteNormedModule)); now apply shifted_int.
    + apply (RInt_correct (V := R_CompleteNormedModule)).
      apply (ex_RInt_continuous (V := R_CompleteNormedModule)). auto.
    + intros x _. pose proof (Hh x (y k) (z k) (T k)) as B.
      unfold minus, plus, opp, scal; simpl; unfold mult; simpl. lra.
  - apply Rnot_lt_le. intros L. set (e := mass (cell h) s - curve M t). assert (0 < e) by (unfold e; lra).
    destruct (density_nearly_1 1 ltac:(lra) (1 - e / (2 * t))) as (x0 & X).
    { assert (0 < e / (2 * t)) by (apply Rdiv_lt_0_compat; lra). lra. }
    destruct (nfloor_ex (Rabs x0 * sigma + Rabs n)) as (j & _ & J).
    { pose proof (Rabs_pos x0). pose proof (Rabs_pos n). nra. }
    set (N := Nat.max k0 (S j)).
    assert (NJ : Rabs x0 * sigma + Rabs n <= INR N).
    { apply Rle_trans with (INR (S j)); [rewrite S_INR; lra|]. apply le_INR. unfold N. lia. }
    specialize (K N ltac:(unfold N; lia)).
    pose proof (I (- INR N - 1 / 2) (INR N + 1 / 2) ltac:(pose proof (pos_INR N); lra)) as B.
    assert (Q : 1 - e / (2 * t) < RInt (density 1) ((- INR N - 1 / 2 - n) / sigma) ((INR N + 1 / 2 - n) / sigma)).
    { pose proof (Rle_abs x0). pose proof (Rle_abs n). pose proof (Rle_abs (- n)) as A. rewrite Rabs_Ropp in A.
      apply X.
      - apply Rmult_le_reg_r with sigma; [assumption|]. unfold Rdiv.
        rewrite Rmult_assoc, Rinv_l by lra. nra.
      - apply Rmult_le_reg_r with sigma; [assumption|]. unfold Rdiv.
        rewrite Rmult_assoc, Rinv_l by lra. nra. }
    set (i := RInt (density 1) _ _) in *.
    assert (t * (1 - i) <= t * (e / (2 * t))) by (apply Rmult_le_compat_l; lra).
    replace (t * (e / (2 * t))) with (e / 2) in * by (field; lra).
    unfold e in *. lra.
Qed.

Lemma noisy_adds sigmas v w : List.Forall (Rlt 0) sigmas -> length v = length w ->
  0 <= distance2 sigmas v w /\ adds (distance2 sigmas v w) (noisy sigmas v) (noisy sigmas w).
Proof.
  intros H. revert v w. induction H as [|sigma sigmas Hs _ IH]; intros v w L; simpl.
  { split; [lra|apply nothing_adds]. }
  destruct v as [|k v], w as [|l w]; try easy; [split; [lra|apply nothing_adds]|].
  injection L as L. destruct (IH v w L) as (D & A).
  pose proof (pow2_ge_0 (IZR (k - l) / sigma)) as Q. split; [simpl in Q; lra|].
  apply followed_adds; auto. now apply coordinate_adds.
Qed.

(** ** A fit *)

Lemma published_adds {D} (near : D -> D -> Prop) budget f x x' : near x x' ->
  costs_at_most (gaussian_release near) budget f ->
  0 <= budget /\ adds (2 * budget) (published f x) (published f x').
Proof.
  intros Hx. revert budget. induction f as [|rho M next IH]; intros budget H.
  - split; [exact H|]. apply adds_more with 0; [simpl in H; lra|apply nothing_adds].
  - destruct H as (R0 & (sigmas & q & P & E & B) & N).
    assert (B0 : 0 <= budget - rho) by (destruct (IH [] _ (N [])); assumption).
    split; [lra|]. replace (2 * budget) with (2 * rho + 2 * (budget - rho)) by ring.
    simpl. destruct (B x x' Hx) as (L & Q).
    destruct (noisy_adds sigmas (q x) (q x') P L) as (D0 & A).
    apply followed_adds; try lra.
    + rewrite !E. apply adds_more with (2 := A). lra.
    + intros a. now apply (IH a).
Qed.

Theorem gaussian_fit {D} (near : D -> D -> Prop) rho mu epsilon (f : fit D) :
  costs_at_most (gaussian_release near) rho f -> 0 < mu -> 2 * rho < mu ^ 2 ->
  (forall x, is_law (published f x)) ->
  dp near epsilon (curve mu (exp epsilon)) (published f).
Proof.
  intros C Hm H L. apply dp_of_sums; [assumption|]. intros x x' Hx s Hs.
  destruct (published_adds near rho f x x' Hx C) as (R0 & _ & _ & A).
  set (nu := sqrt (mu ^ 2 - 2 * rho)). assert (N : 0 < nu) by (apply sqrt_lt_R0; lra).
  pose proof (A nu (exp epsilon) (fun _ => 1) (fun _ => 1) N (exp_pos _)
    (fun _ => or_intror (or_introl (conj eq_refl eq_refl))) s Hs) as B.
  assert (E : sqrt (2 * rho + nu ^ 2) = mu).
  { unfold nu. rewrite <- Rsqr_pow2, Rsqr_sqrt by lra.
    replace (2 * rho + (mu ^ 2 - 2 * rho)) with (mu ^ 2) by ring. now apply sqrt_pow2, Rlt_le. }
  rewrite E in B.
  rewrite (mass_ext _ (fun a => published f x a + - exp epsilon * published f x' a)) in B
    by (intros; ring).
  rewrite mass_plus, mass_scal in B. lra.
Qed.

Lemma gaussian_published_law {D} (near : D -> D -> Prop) budget (f : fit D) x :
  costs_at_most (gaussian_release near) budget f -> is_law (published f x).
Proof.
  revert budget. induction f as [|rho M next IH]; intros budget H; [apply nothing_law|].
  destruct H as (_ & (sigmas & q & P & E & _) & N). simpl. rewrite E.
  apply followed_law; [now apply noisy_law|]. intros a. exact (IH a _ (N a)).
Qed.
