(** Tables of units, exact sums over their rows, and the questions that are asked: definitions only. *)

From Coq Require Import Reals List ZArith.
From Flocq Require Import Core.
From ReleasePath Require Import Constants Floats.
Import ListNotations.
Open Scope R_scope.

(** ** Neighbors *)

(** A unit is what is protected: a row, or a group of rows. Its rows have integer weights that add up
    to at most [scale], the weight of a whole unit (1 where each row is a unit). *)
Definition unit A := list (Z * A).
Definition whole {A} (scale : Z) (u : unit A) : Prop :=
  List.Forall (fun row => 0 <= fst row)%Z u /\ (fold_right Z.add 0 (map fst u) <= scale)%Z.

(** One unit is added or removed, anywhere and with whatever rows. *)
Definition near {A} (scale : Z) (x x' : list (unit A)) : Prop :=
  exists l1 u l2, whole scale u /\
    ((x = l1 ++ l2 /\ x' = l1 ++ u :: l2) \/ (x = l1 ++ u :: l2 /\ x' = l1 ++ l2)).

(** ** Exact sums *)

Fixpoint plus (v w : list Z) : list Z :=
  match v, w with k :: v, l :: w => (k + l)%Z :: plus v w | _, _ => [] end.

(** [f weight row] is what a row adds to a statistic of d integers. *)
Definition sum (d : nat) (vs : list (list Z)) : list Z := fold_right plus (repeat 0%Z d) vs.
Definition total {A} (d : nat) (f : Z -> A -> list Z) (x : list (unit A)) : list Z :=
  sum d (map (fun row => f (fst row) (snd row)) (concat x)).

(** Squared length of a vector, each entry over its sensitivity. *)
Fixpoint norm2 (s : list R) (v : list Z) : R :=
  match s, v with s1 :: s, k :: v => (IZR k / s1) ^ 2 + norm2 s v | _, _ => 0 end.

(** The claim of a question: a row of weight w adds a vector of length at most w / scale, over the
    sensitivities s. It is about one row alone. *)
Definition claim {A} (d : nat) (scale : Z) (s : list R) (f : Z -> A -> list Z) : Prop :=
  length s = d /\ List.Forall (Rlt 0) s /\ (forall w row, length (f w row) = d) /\
  forall w row, (0 <= w <= scale)%Z -> norm2 s (f w row) <= (IZR w / IZR scale) ^ 2.

(** ** Questions *)

(** One of k blocks: a row adds v to the block of its label, and nothing to the others. *)
Fixpoint block (k d label : nat) (v : list Z) : list Z :=
  match k, label with
  | O, _ => []
  | S k, O => v ++ repeat 0%Z (k * d)
  | S k, S label => repeat 0%Z d ++ block k d label v
  end.
Definition blocks (d : nat) (radii : list R) : list R := concat (map (fun r => repeat r d) radii).

(*python sklearn_dp/_privacy/_units.py
def weigh(self, rows):
    if self.weights is None:
        return rows
    return np.trunc(rows * (self.weights[:, None] * self.step))
*)
(** |row| <= 2^26 and weights <= 2^20 are integers and a step is 2^-20, so the product is exact. *)
Definition weigh (scale w : Z) (row : list Z) : list Z := map (fun x => Z.quot (x * w) scale) row.

(** Numbers of units in disjoint cells; a row of no cell has one that there is not. *)
Definition counts {A} (n : nat) (cell : A -> nat) : Z -> A -> list Z :=
  fun w row => block n 1 (cell row) [w].

(** Sums of vectors for each of k labels; with one label, the sum of all. *)
Definition sums {A} (scale : Z) (k d : nat) (label : A -> nat) (vector : A -> list Z) :
  Z -> A -> list Z := fun w row => block k d (label row) (weigh scale w (vector row)).

(** Second moments: x_a x_b for a <= b. The root of the weight scales the row. *)
Fixpoint upper (v : list Z) : list Z :=
  match v with [] => [] | a :: t => map (Z.mul a) v ++ upper t end.
Fixpoint upper_claims (d : nat) (diagonal off : R) : list R :=
  match d with
  | O => []
  | S d => (diagonal :: repeat off d) ++ upper_claims d diagonal off
  end.
Definition moments {A} (root : Z -> Z) (vector : A -> list Z) : Z -> A -> list Z :=
  fun w row => upper (weigh (2 ^ root_bits) (root w) (vector row)).

(*python sklearn_dp/_privacy/_products.py
root = np.floor(np.sqrt(units.weights[place] * units.step) * 2.0**20) * 2.0**-20
rows = np.trunc(rows * root[:, None])
*)
(** The root of a weight, in steps of 2^-20. *)
Definition root_of (scale w : Z) : Z :=
  Zfloor (fl (sqrt (fl (IZR w / IZR scale))) * bpow radix2 root_bits).

(** Ranks of d columns: each adds a column of a lower triangular Toeplitz matrix, from its bin on. *)
Definition shifted (n bin : nat) (first : list Z) : list Z :=
  repeat 0%Z bin ++ firstn (n - bin) first.
Definition ranks {A} (n : nat) (first : list Z) (bins : A -> list nat) : Z -> A -> list Z :=
  fun w row => concat (map (fun bin => map (Z.mul w) (shifted n bin first)) (bins row)).

(** A number of each row, of at most [most]. *)
Definition numbers {A} (number : A -> Z) : Z -> A -> list Z := fun w row => [(w * number row)%Z].

(** Two statistics side by side. *)
Definition beside {A} (f g : Z -> A -> list Z) : Z -> A -> list Z :=
  fun w row => f w row ++ g w row.
