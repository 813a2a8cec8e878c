(** Double precision, and the Python functions that work in it: definitions only. Each is written
    beside the Python that it stands for, which tests/test_machine_checked.py compares with the
    package, statement by statement (docstrings, comments and types aside). *)

From Coq Require Import Reals List ZArith.
From Flocq Require Import Core.
From ReleasePath Require Import Constants.
Import ListNotations.
Open Scope R_scope.

(** ** IEEE 754 binary64, rounding to nearest, ties to even *)

Notation binary64 := (FLT_exp (-1074) 53).
Definition fl (x : R) : R := round radix2 binary64 ZnearestE x.
Definition finite (x : R) : Prop := Rabs x < bpow radix2 1024.
Definition is_float (x : R) : Prop := generic_format radix2 binary64 x /\ finite x.

(** ** The clip *)

(*python sklearn_dp/_privacy/_grid.py
def clip_integer_rows(rows, limit, norms_squared=None, *, own=False):
    norms = row_norms_squared(rows) if norms_squared is None else norms_squared
    norms, limit = norms.astype(np.float64, copy=False), np.asarray(limit, dtype=np.float64)
    over = np.flatnonzero(norms > np.square(limit) * (1 - 2.0**-50))
    if over.size == 0:
        return rows
    clipped = rows if own else rows.copy(order="K")
    limit = np.broadcast_to(limit, norms.shape)[over]
    factor = np.minimum(1.0, limit / np.sqrt(norms[over]) * (1 - 2.0**-48))
    clipped[over] = np.trunc(rows[over] * factor[:, None])
    return clipped
*)
Definition squares (row : list Z) : Z := fold_right Z.add 0%Z (map (fun x => x * x)%Z row).

Definition clip (row : list Z) (limit : R) : list Z :=
  let norm := fl (IZR (squares row)) in
  if Rle_dec norm (fl (fl (limit * limit) * (1 - over))) then row
  else
    let factor := Rmin 1 (fl (fl (limit / fl (sqrt norm)) * (1 - margin))) in
    map (fun x => Ztrunc (fl (IZR x * factor))) row.

(** The clip of Lloyd's iterations: a factor, in steps of 2^-10, that the sums are made with. *)
(*python sklearn_dp/_rows/rows.py
below = limits * (1 - 2.0**-48)
shrink = np.minimum(1.0, below[label] / np.sqrt(np.maximum(square, 1.0)))
factor = np.floor(shrink * 2.0**WEIGHT_BITS)
*)
Definition clip_factor (square : Z) (limit : R) : Z :=
  let below := fl (limit * (1 - factor_margin)) in
  let shrink := Rmin 1 (fl (below / fl (sqrt (Rmax (IZR square) 1)))) in
  Zfloor (fl (shrink * bpow radix2 WEIGHT_BITS)).

(** ** The grid: a row of floats becomes a row of integers *)

(*python sklearn_dp/_privacy/_grid.py
@classmethod
def for_radius(cls, radius):
    mantissa, exponent = np.frexp(radius)
    exponent = int(exponent) - (1 if mantissa == 0.5 else 0)
    return cls(float(np.ldexp(1.0, max(exponent, -980) - 24)))
*)
(** [exponent] is that of the least power of two that is no less than the radius. *)
Definition exponent_of (radius : R) (exponent : Z) : Prop :=
  bpow radix2 (exponent - 1) < radius <= bpow radix2 exponent.
Definition unit_of (exponent : Z) : R :=
  bpow radix2 (Z.max exponent least_exponent - grid_bits).

(*python sklearn_dp/_privacy/_grid.py
def quantize(self, X, radius):
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(f"n_features must be at most {MOST_COLUMNS}.")
    longest = largest_of(X)
    if not longest < np.inf:
        raise ValueError("rows on a grid must be finite.")
    if longest > radius:
        rows = np.array(X, dtype=np.float64, order="C")
        largest = np.abs(rows).max(axis=1, initial=0.0)
        far = np.flatnonzero(largest > radius)
        rows[far] = rows[far] / largest[far, None] * radius
        rows *= 1.0 / self.unit
    else:
        rows = np.multiply(X, 1.0 / self.unit, dtype=np.float64, order="C")
    np.trunc(rows, out=rows)
    steps = radius / self.unit
    norms = row_norms_squared(rows, 1.001 * min(longest, radius) / self.unit)
    return clip_integer_rows(rows, min(steps, LIMIT), norms, own=True)
*)
Definition largest (row : list R) : R := fold_right Rmax 0 (map Rabs row).

Definition shrunk (radius : R) (row : list R) : list R :=
  if Rlt_dec radius (largest row)
  then map (fun x => fl (fl (x / largest row) * radius)) row
  else row.

Definition in_steps (unit radius : R) (row : list R) : list Z :=
  map (fun x => Ztrunc (fl (x * fl (1 / unit)))) (shrunk radius row).

Definition steps_of (unit radius : R) : R := Rmin (fl (radius / unit)) (IZR LIMIT).

Definition quantize (unit radius : R) (row : list R) : list Z :=
  clip (in_steps unit radius row) (steps_of unit radius).

(** ** The scale of the noise *)

(*python sklearn_dp/_privacy/_session.py
def sigma_of(sensitivity, rho):
    return round_up(sensitivity / math.sqrt(2 * rho))
*)
(*python sklearn_dp/_costs/numbers.py
def round_up(value):
    if isinstance(value, float):
        return math.nextafter(math.nextafter(value, math.inf), math.inf)
    moved = np.nextafter(np.nextafter(np.asarray(value, dtype=np.float64), np.inf), np.inf)
    return moved if moved.ndim else float(moved)
*)
Definition next (x : R) : R := succ radix2 binary64 x.
Definition round_up (x : R) : R := next (next x).
Definition sigma_of (sensitivity rho : R) : R :=
  round_up (fl (sensitivity / fl (sqrt (fl (2 * rho))))).

(*python sklearn_dp/_costs/accounting.py
def mu_from_rho(rho):
    return math.nextafter(math.sqrt(2 * check_positive("rho", rho)), math.inf)
*)
Definition mu_from_rho (rho : R) : R := next (fl (sqrt (fl (2 * rho)))).

(** ** From rho to epsilon *)

(*python sklearn_dp/_costs/numbers.py
def sum_up(values):
    values = list(values)
    nearest = math.fsum(values)
    if math.isinf(nearest):
        return nearest
    above = math.fsum([*values, -nearest]) > 0
    return math.nextafter(nearest, math.inf) if above else nearest
*)
(** math.fsum is the exact sum, rounded. *)
Definition exact_sum (values : list R) : R := fold_right Rplus 0 values.
Definition sum_up (values : list R) : R :=
  let nearest := fl (exact_sum values) in
  if Rlt_dec 0 (fl (exact_sum values - nearest)) then next nearest else nearest.

(*python sklearn_dp/_costs/accounting.py
def zcdp_epsilon(rho, delta):
    rho, delta = check_non_negative("rho", rho), check_delta("delta", delta)
    if rho == 0:
        return 0.0
    log_inverse = -math.log(delta)

    def slope(b):
        return rho * b * b + math.log1p(b) - log_inverse
    low = min(math.sqrt(log_inverse / rho / 2), math.expm1(log_inverse / 2))
    high = min(math.sqrt(log_inverse / rho), math.expm1(log_inverse))
    b = _log_root(slope, low, high)
    terms = rho * (1 + b), -math.log1p(1 / b), log_inverse / b, -math.log1p(b) / b
    return max(0.0, sum_up([*terms, ROUNDING * sum(map(abs, terms))]))
*)
(** The root search may find any b. [total] is sum(map(abs, terms)), however Python adds up. *)
Section Epsilon.
Variables (log log1p : R -> R) (rho delta b total : R).

Definition terms : list R :=
  [fl (rho * fl (1 + b)); - log1p (fl (1 / b)); fl (- log delta / b); fl (- log1p b / b)].
Definition computed_epsilon : R := Rmax 0 (sum_up (terms ++ [fl (ROUNDING * total)])).

(** ASSUMED of the logarithms of the C library: they are off by less than 2^-50, relatively. *)
Definition logarithms_are_close : Prop :=
  (forall x, is_float x -> 0 < x < 1 ->
     is_float (log x) /\ Rabs (log x - ln x) <= bpow radix2 (-50) * - ln x)
  /\ (forall x, is_float x -> 0 < x ->
     is_float (log1p x) /\ Rabs (log1p x - ln (1 + x)) <= bpow radix2 (-50) * ln (1 + x)).
End Epsilon.
