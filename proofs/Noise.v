(** The Gaussian law and the release of a vector: definitions only. *)

From Coq Require Import Reals List ZArith.
From Coquelicot Require Import Coquelicot.
From ReleasePath Require Import Privacy.
Import ListNotations.
Open Scope R_scope.

(** Density of the ideal Gaussian law. *)
Definition density (sigma x : R) : R := exp (- x ^ 2 / (2 * sigma ^ 2)) / (sigma * sqrt (2 * PI)).

(** The law of round(sigma Z), on the integers. *)
Definition noise (sigma : R) : law Z :=
  fun k => RInt (density sigma) (IZR k - 1 / 2) (IZR k + 1 / 2).

(** A vector of integers with independent noise: the law of v + round(sigma Z). *)
Fixpoint noisy (sigmas : list R) (v : list Z) : law (list Z) :=
  match sigmas, v with
  | sigma :: sigmas, k :: v =>
      followed (fun o => noise sigma (o - k)%Z) (fun _ => noisy sigmas v)
  | _, _ => nothing
  end.

(** Sum over the entries of ((v_i - w_i) / s_i)^2. *)
Fixpoint distance2 (s : list R) (v w : list Z) : R :=
  match s, v, w with
  | s1 :: s, k :: v, l :: w => (IZR (k - l) / s1) ^ 2 + distance2 s v w
  | _, _, _ => 0
  end.

(** A Gaussian release of cost rho: integers with noise, for neighbors at most sqrt(2 rho) standard
    deviations apart. *)
Definition gaussian_release {D} (near : D -> D -> Prop) (rho : R) (M : D -> law (list Z)) : Prop :=
  exists sigmas q,
    List.Forall (Rlt 0) sigmas /\ (forall x, M x = noisy sigmas (q x))
    /\ forall x x', near x x' ->
         length (q x) = length (q x') /\ distance2 sigmas (q x) (q x') <= 2 * rho.

(** ** The exact curve of Gaussian differential privacy *)

(** P[Z > x] and P[Z <= x] of the ideal Gaussian. *)
Definition tail (x : R) : R := 1 / 2 - RInt (density 1) 0 x.
Definition Phi (x : R) : R := 1 - tail x.

(** delta of mu-GDP at epsilon = ln t (Dong, Roth and Su 2022). *)
Definition curve (mu t : R) : R := Phi (mu / 2 - ln t / mu) - t * Phi (- mu / 2 - ln t / mu).
