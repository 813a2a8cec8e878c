(** Proofs about laws: composition, and from zCDP to (epsilon, delta). *)

From Coq Require Import Reals List ZArith Lra Lia Classical FinFun.
From Coquelicot Require Import Coquelicot.
From ReleasePath Require Import Privacy.
Import ListNotations.
Open Scope R_scope.

(** ** Finite sums *)

Lemma mass_cons {A} (f : law A) a s : mass f (a :: s) = f a + mass f s.
Proof. reflexivity. Qed.

Lemma mass_app {A} (f : law A) s t : mass f (s ++ t) = mass f s + mass f t.
Proof. induction s; simpl; unfold mass in *; simpl in *; lra. Qed.

Lemma mass_le {A} (f g : law A) s : (forall a, In a s -> f a <= g a) -> mass f s <= mass g s.
Proof.
  induction s as [|a s IH]; intros H; [apply Rle_refl|].
  rewrite !mass_cons. pose proof (H a (or_introl eq_refl)).
  assert (mass f s <= mass g s) by (apply IH; intros; apply H; now right). lra.
Qed.

Lemma mass_ext {A} (f g : law A) s : (forall a, In a s -> f a = g a) -> mass f s = mass g s.
Proof. intros H. apply Rle_antisym; apply mass_le; intros a Ha; rewrite (H a Ha); lra. Qed.

Lemma mass_scal {A} c (f : law A) s : mass (fun a => c * f a) s = c * mass f s.
Proof. induction s as [|a s IH]; [unfold mass; simpl; ring|]. rewrite !mass_cons, IH. ring. Qed.

Lemma mass_plus {A} (f g : law A) s : mass (fun a => f a + g a) s = mass f s + mass g s.
Proof. induction s as [|a s IH]; [unfold mass; simpl; ring|]. rewrite !mass_cons, IH. ring. Qed.

Lemma mass_nonneg {A} (f : law A) s : (forall a, 0 <= f a) -> 0 <= mass f s.
Proof.
  intros H. induction s as [|a s IH]; [unfold mass; simpl; lra|].
  rewrite mass_cons. specialize (H a). lra.
Qed.

Lemma mass_map {A B} (f : law B) (g : A -> B) s : mass f (map g s) = mass (fun a => f (g a)) s.
Proof. unfold mass. now rewrite map_map. Qed.

Lemma mass_incl {A} (f : law A) s s' :
  (forall a, 0 <= f a) -> NoDup s -> incl s s' -> mass f s <= mass f s'.
Proof.
  intros Hf. revert s'. induction s as [|a s IH]; intros s' Hs Hi.
  - now apply mass_nonneg.
  - inversion_clear Hs as [|? ? Ha Hs'].
    destruct (in_split a s' (Hi a (or_introl eq_refl))) as (l1 & l2 & ->).
    assert (mass f s <= mass f (l1 ++ l2)) as H.
    { apply IH; [assumption|]. intros b Hb. specialize (Hi b (or_intror Hb)).
      rewrite in_app_iff in Hi |- *. simpl in Hi. destruct Hi as [H|[H|H]]; auto.
      subst. contradiction. }
    rewrite mass_app in *. rewrite !mass_cons. lra.
Qed.

Lemma distinct {A} (s : list A) : exists s', NoDup s' /\ incl s s'.
Proof.
  induction s as [|a s (s' & Hd & Hi)].
  - exists []. split; [constructor|easy].
  - destruct (classic (In a s')) as [H|H].
    + exists s'. split; [assumption|]. intros b [->|Hb]; auto.
    + exists (a :: s'). split; [now constructor|]. intros b [->|Hb]; [now left|right; auto].
Qed.

(** Lists sorted by their first element. *)
Lemma mass_flat {A} (f : law (list A)) heads (tails : A -> list (list A)) :
  mass f (flat_map (fun a => map (cons a) (tails a)) heads)
  = mass (fun a => mass (fun t => f (a :: t)) (tails a)) heads.
Proof.
  induction heads as [|a s IH]; [reflexivity|].
  simpl flat_map. now rewrite mass_app, mass_cons, IH, mass_map.
Qed.

Lemma mass_followed {A} (f : law (list A)) s :
  (forall l, 0 <= f l) -> f [] = 0 -> NoDup s ->
  exists heads tails, NoDup heads /\ NoDup tails /\
    mass f s <= mass (fun a => mass (fun t => f (a :: t)) tails) heads.
Proof.
  intros Hf Hnil Hs.
  destruct (distinct (flat_map (fun l => match l with [] => [] | a :: _ => [a] end) s))
    as (heads & Hh & Ih).
  destruct (distinct (map (@tl A) s)) as (tails & Ht & It).
  exists heads, tails. split; [assumption|]. split; [assumption|].
  rewrite <- mass_flat with (tails := fun _ => tails).
  apply Rle_trans with
    (mass f ([] :: flat_map (fun a => map (cons a) tails) heads)).
  - apply mass_incl; auto. intros [|a t] Hl; [now left|right].
    apply in_flat_map. exists a. split.
    + apply Ih. apply in_flat_map. exists (a :: t). simpl. auto.
    + apply in_map. apply It. apply (in_map (@tl A) s (a :: t)) in Hl. exact Hl.
  - rewrite mass_cons, Hnil. lra.
Qed.

Lemma NoDup_flat {A} (heads : list A) (tails : list (list A)) :
  NoDup heads -> NoDup tails -> NoDup (flat_map (fun a => map (cons a) tails) heads).
Proof.
  intros Hh Ht. induction Hh as [|a s Ha Hs IH]; simpl; [constructor|].
  assert (forall own, NoDup own ->
    NoDup (map (cons a) own ++ flat_map (fun a => map (cons a) tails) s)) as H; [|now apply H].
  induction own as [|l own IHo]; simpl; intros H; [assumption|].
  inversion_clear H as [|? ? H1 H2]. constructor; [|now apply IHo].
  rewrite in_app_iff. intros [H|H].
  { apply in_map_iff in H. destruct H as (t & E & H). injection E as ->. contradiction. }
  apply in_flat_map in H. destruct H as (b & Hb & H). apply in_map_iff in H.
  destruct H as (t & E & _). injection E as -> _. contradiction.
Qed.

(** ** The summands *)

Lemma renyi_term_nonneg alpha p q : 0 <= renyi_term alpha p q.
Proof.
  unfold renyi_term. destruct Req_EM_T; [lra|]. unfold Rpower.
  apply Rmult_le_pos; left; apply exp_pos.
Qed.

Lemma renyi_term_mult alpha p q p' q' :
  0 <= p -> 0 <= q -> 0 <= p' -> 0 <= q' -> (q = 0 -> p = 0) -> (q' = 0 -> p' = 0) ->
  renyi_term alpha (p * p') (q * q') = renyi_term alpha p q * renyi_term alpha p' q'.
Proof.
  intros Hp Hq Hp' Hq' A A'. unfold renyi_term.
  destruct (Req_EM_T p 0) as [->|Np]; destruct (Req_EM_T (_ * p') 0) as [E|E]; try ring.
  - exfalso; lra.
  - destruct (Req_EM_T p' 0) as [->|N]; [ring|]. exfalso. apply Rmult_integral in E. lra.
  - destruct (Req_EM_T p' 0) as [->|N]; [exfalso; lra|].
    assert (0 < q) by (destruct Hq as [|<-]; [assumption|exfalso; auto]).
    assert (0 < q') by (destruct Hq' as [|<-]; [assumption|exfalso; auto]).
    rewrite <- !Rpower_mult_distr by lra. ring.
Qed.

(** u^alpha >= 1 + alpha (u - 1): Bernoulli's inequality, for real exponents. *)
Lemma exp_ge x : 1 + x <= exp x.
Proof.
  destruct (Req_dec x 0) as [->|H]; [rewrite exp_0; lra|left; now apply exp_ineq1].
Qed.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; now apply exp_increasing|apply Rle_refl]. Qed.

Lemma ln_le_sub x : 0 < x -> ln x <= x - 1.
Proof.
  intros H. pose proof (exp_ge (ln x)). rewrite exp_ln in *; lra.
Qed.

Lemma bernoulli u alpha : 0 < u -> 1 < alpha -> 1 + alpha * (u - 1) <= Rpower u alpha.
Proof.
  intros Hu Ha. destruct (Rle_dec (1 + alpha * (u - 1)) 0) as [H|H].
  { apply Rle_trans with 0; [assumption|]. left. apply exp_pos. }
  apply Rnot_le_lt in H. set (w := 1 + alpha * (u - 1)) in *.
  unfold Rpower. rewrite <- (exp_ln w) by assumption.
  apply exp_le.
  assert (ln (w / u) = ln w - ln u) as E1 by (now rewrite ln_div).
  assert (ln (1 / u) = - ln u) as E2 by (rewrite ln_div, ln_1; lra).
  assert (H1 : ln (w / u) <= w / u - 1) by (apply ln_le_sub, Rdiv_lt_0_compat; lra).
  assert (H2 : ln (1 / u) <= 1 / u - 1) by (apply ln_le_sub, Rdiv_lt_0_compat; lra).
  assert (E : (w / u - 1) + (alpha - 1) * (1 / u - 1) = 0) by (unfold w; field; lra).
  assert ((alpha - 1) * ln (1 / u) <= (alpha - 1) * (1 / u - 1)) by (apply Rmult_le_compat_l; lra).
  rewrite E1 in H1. rewrite E2 in *. lra.
Qed.

(** ** Laws of lists *)

Lemma followed_law {A} (p : law A) q :
  is_law p -> (forall a, is_law (q a)) -> is_law (followed p q).
Proof.
  intros (P0 & P1 & P2) Q. split; [|split].
  - intros [|a t]; simpl; [lra|]. apply Rmult_le_pos; [auto|apply Q].
  - intros s Hs. destruct (mass_followed (followed p q) s) as (heads & tails & Hh & Ht & H); auto.
    { intros [|a t]; simpl; [lra|]. apply Rmult_le_pos; [auto|apply Q]. }
    apply Rle_trans with (1 := H). apply Rle_trans with (mass p heads); [|now apply P1].
    apply mass_le. intros a _. simpl. rewrite mass_scal.
    rewrite <- (Rmult_1_r (p a)) at 2. apply Rmult_le_compat_l; [auto|]. now apply Q.
  - intros t Ht. set (r := (t + 1) / 2).
    assert (exists r, t < r * r /\ 0 < r < 1) as (r' & Hr & Hr1).
    { destruct (Rle_dec t 0) as [H|H].
      - exists (1/2). split; lra.
      - exists (sqrt r). assert (0 < r < 1) by (unfold r; lra). rewrite sqrt_sqrt by lra.
        split; [unfold r; lra|]. split; [apply sqrt_lt_R0; lra|].
        rewrite <- sqrt_1. apply sqrt_lt_1; lra. }
    destruct (P2 r') as (heads & Hh & Mh); [lra|].
    (* One list of tails that is long enough after each head. *)
    assert (exists tails, NoDup tails /\ forall a, In a heads -> r' < mass (q a) tails)
      as (tails & Nt & Mt).
    { clear - Q Hr1. induction heads as [|a heads (f & N & M)].
      - exists []. split; [constructor|easy].
      - destruct (proj2 (proj2 (Q a)) r') as (s & Ns & Ms); [lra|].
        destruct (distinct (s ++ f)) as (u & Nu & Iu). exists u. split; [assumption|].
        intros b [<-|Hb].
        + apply Rlt_le_trans with (1 := Ms). apply mass_incl; auto; [apply Q|].
          intros c Hc. apply Iu, in_or_app. now left.
        + apply Rlt_le_trans with (1 := M b Hb). apply mass_incl; auto; [apply Q|].
          intros c Hc. apply Iu, in_or_app. now right. }
    exists (flat_map (fun a => map (cons a) tails) heads). split; [now apply NoDup_flat|].
    rewrite mass_flat with (tails := fun _ => tails). simpl. apply Rlt_le_trans with (1 := Hr).
    apply Rle_trans with (mass (fun a => r' * p a) heads).
    { rewrite mass_scal. apply Rmult_le_compat_l; lra. }
    apply mass_le. intros a Ha. rewrite mass_scal. rewrite Rmult_comm.
    apply Rmult_le_compat_l; [auto|]. left. auto.
Qed.

Lemma followed_renyi {A} alpha c c' (p p' : law A) q q' :
  is_law p -> is_law p' -> (forall a, is_law (q a)) -> (forall a, is_law (q' a)) -> 0 <= c' ->
  renyi alpha c p p' -> (forall a, renyi alpha c' (q a) (q' a)) ->
  renyi alpha (c * c') (followed p q) (followed p' q').
Proof.
  intros (P & _) (P' & _) Q Q' Hc (A1 & R1) H. split.
  - intros [|a t]; simpl; [easy|]. intros E. apply Rmult_integral in E. destruct E as [E|E].
    + rewrite (A1 a E). ring.
    + rewrite (proj1 (H a) t E). ring.
  - intros s Hs.
    destruct (mass_followed (fun l => renyi_term alpha (followed p q l) (followed p' q' l)) s)
      as (heads & tails & Hh & Ht & M); auto.
    { intros; apply renyi_term_nonneg. }
    { simpl. unfold renyi_term. destruct Req_EM_T; lra. }
    apply Rle_trans with (1 := M).
    apply Rle_trans with (mass (fun a => c' * renyi_term alpha (p a) (p' a)) heads).
    + apply mass_le. intros a _. simpl.
      rewrite (mass_ext _ (fun t => renyi_term alpha (p a) (p' a) * renyi_term alpha (q a t) (q' a t))).
      * rewrite mass_scal, Rmult_comm. apply Rmult_le_compat_r; [apply renyi_term_nonneg|].
        now apply H.
      * intros t _. apply renyi_term_mult; auto; try apply Q; try apply Q'; apply H.
    + rewrite mass_scal, Rmult_comm. apply Rmult_le_compat_r; auto.
Qed.

Lemma nothing_law {A} : is_law (@nothing A).
Proof.
  split; [|split].
  - intros [|a t]; simpl; lra.
  - assert (forall u, ~ In [] u -> mass (@nothing A) u = 0) as Z.
    { induction u as [|[|a t] u IH]; intros N; [reflexivity|exfalso; apply N; now left|].
      rewrite mass_cons, IH; [simpl; ring|]. intros N'. apply N. now right. }
    intros s Hs. destruct (classic (In [] s)) as [H|H]; [|rewrite Z by assumption; lra].
    destruct (in_split _ _ H) as (s1 & s2 & ->). apply NoDup_remove_2 in Hs.
    rewrite in_app_iff in Hs. rewrite mass_app, mass_cons, !Z by tauto. simpl. lra.
  - intros t Ht. exists [[]]. split; [constructor; [easy|constructor]|]. unfold mass; simpl; lra.
Qed.

Lemma nothing_renyi {A} alpha : renyi alpha 1 (@nothing A) nothing.
Proof.
  split; [easy|]. intros s Hs.
  rewrite (mass_ext _ nothing); [now apply nothing_law|].
  intros [|a t] _; unfold renyi_term; simpl; destruct Req_EM_T; try lra; try easy.
  unfold Rpower. rewrite ln_1, !Rmult_0_r, exp_0. ring.
Qed.

Lemma renyi_weaken {A} alpha c c' (p q : law A) : c <= c' -> renyi alpha c p q -> renyi alpha c' p q.
Proof. intros H (A1 & R1). split; [assumption|]. intros s Hs. specialize (R1 s Hs). lra. Qed.

(** ** A whole fit *)

Lemma published_law {D} (near : D -> D -> Prop) f budget x :
  costs_at_most (zcdp near) budget f -> is_law (published f x).
Proof.
  revert budget. induction f as [|rho M next IH]; intros budget H; [apply nothing_law|].
  destruct H as (_ & Z & N). apply followed_law; [apply Z|]. intros a. apply (IH a _ (N a)).
Qed.

Theorem composition {D} (near : D -> D -> Prop) budget (f : fit D) :
  costs_at_most (zcdp near) budget f -> zcdp near budget (published f).
Proof.
  intros H. split; [intros x; exact (published_law near f budget x H)|].
  intros x x' Hx alpha Ha. revert budget H.
  induction f as [|rho M next IH]; intros budget H.
  - apply renyi_weaken with 1; [|apply nothing_renyi]. simpl in H.
    apply Rle_trans with (2 := exp_ge _).
    assert (0 <= alpha * (alpha - 1) * budget)
      by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra). lra.
  - destruct H as (_ & Z & N).
    replace (alpha * (alpha - 1) * budget)
      with (alpha * (alpha - 1) * rho + alpha * (alpha - 1) * (budget - rho)) by ring.
    rewrite exp_plus. apply followed_renyi; try apply Z; auto.
    + intros a. exact (published_law near (next a) _ x (N a)).
    + intros a. exact (published_law near (next a) _ x' (N a)).
    + left. apply exp_pos.
Qed.

(** ** From zCDP to (epsilon, delta) *)

Lemma mass_le_1_Lub {A} (p : law A) (event : A -> Prop) :
  is_law p -> exists l : R, Lub_Rbar (fun t => exists s, NoDup s /\ (forall a, In a s -> event a)
    /\ t = mass p s) = Finite l.
Proof.
  intros (P0 & P1 & _). destruct (Lub_Rbar_correct (fun t => exists s, NoDup s /\
    (forall a, In a s -> event a) /\ t = mass p s)) as (U & L).
  destruct (Lub_Rbar _) as [l| |].
  - now exists l.
  - exfalso. apply (L (Finite 1)). intros t (s & Hs & _ & ->). simpl. now apply P1.
  - exfalso. apply (U 0). exists []. split; [constructor|]. split; [easy|reflexivity].
Qed.

Lemma mass_le_prob {A} (p : law A) (event : A -> Prop) s :
  is_law p -> NoDup s -> (forall a, In a s -> event a) -> mass p s <= prob p event.
Proof.
  intros P Hs He. unfold prob. destruct (mass_le_1_Lub p event P) as (l & E).
  pose proof (proj1 (Lub_Rbar_correct (fun t => exists s, NoDup s /\ (forall a, In a s -> event a)
    /\ t = mass p s))) as U. rewrite E in *. simpl. apply (U (mass p s)). now exists s.
Qed.

Lemma prob_le {A} (p : law A) (event : A -> Prop) c :
  is_law p -> (forall s, NoDup s -> (forall a, In a s -> event a) -> mass p s <= c) ->
  prob p event <= c.
Proof.
  intros P H. unfold prob. destruct (mass_le_1_Lub p event P) as (l & E).
  pose proof (proj2 (Lub_Rbar_correct (fun t => exists s, NoDup s /\ (forall a, In a s -> event a)
    /\ t = mass p s))) as L. rewrite E in *. simpl. apply (L (Finite c)).
  intros t (s & Hs & He & ->). simpl. auto.
Qed.

(** What a finite sum says is what the definition asks. *)
Lemma dp_of_sums {D A} (near : D -> D -> Prop) epsilon delta (M : D -> law A) :
  (forall x, is_law (M x)) ->
  (forall x x', near x x' -> forall s, NoDup s ->
    mass (M x) s <= exp epsilon * mass (M x') s + delta) ->
  dp near epsilon delta M.
Proof.
  intros L H x x' Hx event. apply prob_le; [apply L|]. intros s Hs He.
  apply Rle_trans with (1 := H x x' Hx s Hs). apply Rplus_le_compat_r.
  apply Rmult_le_compat_l; [left; apply exp_pos|]. now apply mass_le_prob.
Qed.

Lemma summand (b epsilon p q : R) :
  0 < b -> 0 <= p -> 0 <= q -> (q = 0 -> p = 0) ->
  p <= exp epsilon * q
       + exp (- ln (1 + b) - b * (epsilon + ln (1 + 1 / b))) * renyi_term (1 + b) p q.
Proof.
  intros Hb Hp Hq A. unfold renyi_term. destruct Req_EM_T as [->|N].
  { rewrite Rmult_0_r, Rplus_0_r. apply Rmult_le_pos; [left; apply exp_pos|assumption]. }
  assert (0 < p) by lra. assert (0 < q) by (destruct Hq as [|<-]; [assumption|exfalso; auto]).
  set (E := exp epsilon). assert (0 < E) by apply exp_pos.
  set (s := E * (1 + 1 / b)).
  assert (0 < 1 / b) by (apply Rdiv_lt_0_compat; lra).
  assert (0 < s) by (apply Rmult_lt_0_compat; lra).
  assert (0 < p / q) by (now apply Rdiv_lt_0_compat).
  assert (0 < p / q / s) by (now apply Rdiv_lt_0_compat).
  pose proof (bernoulli (p / q / s) (1 + b) ltac:(lra) ltac:(lra)) as B.
  assert (L : exp (- ln (1 + b) - b * (epsilon + ln (1 + 1 / b)))
              * (Rpower p (1 + b) * Rpower q (1 - (1 + b)))
              = q * s / (1 + b) * Rpower (p / q / s) (1 + b)).
  { assert (epsilon + ln (1 + 1 / b) = ln s) as ->
      by (unfold s; rewrite ln_mult by lra; unfold E; rewrite ln_exp; reflexivity).
    unfold Rpower. rewrite !ln_div by lra.
    rewrite <- (exp_ln (q * s / (1 + b)))
      by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra).
    rewrite <- !exp_plus. f_equal.
    rewrite ln_div by (try apply Rmult_lt_0_compat; lra). rewrite ln_mult by lra. ring. }
  rewrite L.
  apply Rle_trans with (E * q + q * s / (1 + b) * (1 + (1 + b) * (p / q / s - 1))).
  - right. unfold s. field. repeat split; lra.
  - apply Rplus_le_compat_l, Rmult_le_compat_l; [|assumption].
    left. apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra.
Qed.

Theorem conversion {D A} (near : D -> D -> Prop) rho delta b (M : D -> law A) :
  0 < delta -> 0 < b -> zcdp near rho M ->
  dp near (rho * (1 + b) - ln (1 + 1 / b) + (ln (1 / delta) - ln (1 + b)) / b) delta M.
Proof.
  intros Hd Hb (L & Z). apply dp_of_sums; [assumption|]. intros x x' Hx s Hs.
  destruct (Z x x' Hx (1 + b)) as (A1 & R1); [lra|].
  set (epsilon := rho * (1 + b) - ln (1 + 1 / b) + (ln (1 / delta) - ln (1 + b)) / b).
  set (c := exp (- ln (1 + b) - b * (epsilon + ln (1 + 1 / b)))).
  apply Rle_trans with
    (mass (fun a => exp epsilon * M x' a + c * renyi_term (1 + b) (M x a) (M x' a)) s).
  - apply mass_le. intros a _. apply summand; auto; apply L.
  - rewrite mass_plus, !mass_scal. apply Rplus_le_compat_l.
    apply Rle_trans with (c * exp ((1 + b) * (1 + b - 1) * rho)).
    + apply Rmult_le_compat_l; [left; apply exp_pos|auto].
    + right. unfold c. rewrite <- exp_plus, <- (exp_ln delta Hd). f_equal.
      unfold epsilon. rewrite (ln_div 1 delta), ln_1 by lra. field. lra.
Qed.

Lemma dp_weaken {D A} (near : D -> D -> Prop) epsilon epsilon' delta (M : D -> law A) :
  (forall x, is_law (M x)) -> epsilon <= epsilon' -> dp near epsilon delta M -> dp near epsilon' delta M.
Proof.
  intros L H P x x' Hx event. apply Rle_trans with (1 := P x x' Hx event).
  apply Rplus_le_compat_r, Rmult_le_compat_r; [|now apply exp_le].
  apply (mass_le_prob (M x') event []); [apply L|constructor|easy].
Qed.
