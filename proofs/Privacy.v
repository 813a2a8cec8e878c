(** What privacy means here: definitions only. Laws live on countable sets, so no measure theory is
    needed: every published number is an integer in steps of a public grid. *)

From Coq Require Import Reals List ZArith.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

(** ** Laws: a probability for each outcome *)

Definition law (A : Type) := A -> R.

(** Sum over a finite list of outcomes. *)
Definition mass {A} (p : law A) (s : list A) : R := fold_right Rplus 0 (map p s).

(** Probabilities are not negative, those of distinct outcomes sum to at most 1, and to as near 1 as
    wanted. *)
Definition is_law {A} (p : law A) : Prop :=
  (forall a, 0 <= p a)
  /\ (forall s, NoDup s -> mass p s <= 1)
  /\ (forall t, t < 1 -> exists s, NoDup s /\ t < mass p s).

(** Probability of an event: the least upper bound of the sums over finite parts of it. *)
Definition prob {A} (p : law A) (event : A -> Prop) : R :=
  real (Lub_Rbar (fun t => exists s, NoDup s /\ (forall a, In a s -> event a) /\ t = mass p s)).

(** ** Differential privacy, for a relation [near] of neighboring data sets *)

(** The textbook definition, for all events. An event about a function of the outcome is an event, so
    post-processing is part of it. *)
Definition dp {D A} (near : D -> D -> Prop) (epsilon delta : R) (M : D -> law A) : Prop :=
  forall x x', near x x' -> forall event,
    prob (M x) event <= exp epsilon * prob (M x') event + delta.

(** A summand of the Renyi divergence: p^alpha q^(1 - alpha). *)
Definition renyi_term (alpha p q : R) : R :=
  if Req_EM_T p 0 then 0 else Rpower p alpha * Rpower q (1 - alpha).

(** exp((alpha - 1) D_alpha(p || q)) <= c, which is infinite where q vanishes and p does not. *)
Definition renyi {A} (alpha c : R) (p q : law A) : Prop :=
  (forall a, q a = 0 -> p a = 0)
  /\ forall s, NoDup s -> mass (fun a => renyi_term alpha (p a) (q a)) s <= c.

(** rho-zCDP: D_alpha <= alpha rho for all alpha > 1 (Bun and Steinke 2016). *)
Definition zcdp {D A} (near : D -> D -> Prop) (rho : R) (M : D -> law A) : Prop :=
  (forall x, is_law (M x))
  /\ forall x x', near x x' -> forall alpha, 1 < alpha ->
       renyi alpha (exp (alpha * (alpha - 1) * rho)) (M x) (M x').

(** ** A fit: releases, each chosen by those before it *)

(** What is asked next, at what cost, and how much of the budget is left may depend on all that has
    been published, never on the data. *)
Inductive fit (D : Type) : Type :=
| Stop
| Ask (rho : R) (M : D -> law (list Z)) (next : list Z -> fit D).
Arguments Stop {D}.
Arguments Ask {D}.

(** The law of the first element and, given it, of the rest of a list. *)
Definition followed {A} (p : law A) (q : A -> law (list A)) : law (list A) :=
  fun l => match l with [] => 0 | a :: t => p a * q a t end.

Definition nothing {A} : law (list A) := fun l => match l with [] => 1 | _ => 0 end.

(** The law of all that a fit publishes. *)
Fixpoint published {D} (f : fit D) (x : D) : law (list (list Z)) :=
  match f with
  | Stop => nothing
  | Ask _ M next => followed (M x) (fun a => published (next a) x)
  end.

(** Whatever is published, the costs add up to at most [budget]. [costs rho M] is what is known of a
    release of cost rho: that it is rho-zCDP, for instance. *)
Fixpoint costs_at_most {D} (costs : R -> (D -> law (list Z)) -> Prop) (budget : R) (f : fit D) :
  Prop :=
  match f with
  | Stop => 0 <= budget
  | Ask rho M next =>
      0 <= rho /\ costs rho M /\ forall a, costs_at_most costs (budget - rho) (next a)
  end.
