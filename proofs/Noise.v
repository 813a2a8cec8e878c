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
