(** The sampler, beside the Python that it stands for: definitions only.

    Python's integers are those of Z, its // and >> round down as Z.div and Z.shiftr do. Loops have
    [fuel] here, as much as one wants: what is proved is that a loop that ends gives what is right. *)

From Coq Require Import Reals List ZArith.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From ReleasePath Require Import Constants Noise Floats.
Import ListNotations.
Open Scope Z_scope.

Fixpoint while {S} (fuel : nat) (test : S -> bool) (step : S -> S) (s : S) : option S :=
  match fuel with
  | O => None
  | S fuel => if test s then while fuel test step (step s) else Some s
  end.

Notation "'do' x <- a ; b" := (match a with Some x => b | None => None end)
  (at level 200, x pattern, a at level 100, b at level 200).

(** ** Tail probabilities *)

(*python sklearn_dp/_privacy/_noise.py
def _arctan_of_inverse(q, work):
    power = total = (1 << work) // q
    n = 0
    while power:
        n += 1
        power //= q * q
        total += (-power if n % 2 else power) // (2 * n + 1)
    return total
*)
Definition arctan_of_inverse (fuel : nat) (q work : Z) : option Z :=
  let first := Z.shiftl 1 work / q in
  do (_, total, _) <- while fuel
    (fun '(power, total, n) => negb (power =? 0))
    (fun '(power, total, n) =>
      let n := n + 1 in
      let power := power / (q * q) in
      (power, total + (if Z.odd n then - power else power) / (2 * n + 1), n))
    (first, first, 0);
  Some total.

(*python sklearn_dp/_privacy/_noise.py
def _pi(work):
    guarded = work + 32
    return (16 * _arctan_of_inverse(5, guarded) - 4 * _arctan_of_inverse(239, guarded)) >> 32

@lru_cache(maxsize=64)
def _inverse_root_two_pi(work):
    return math.isqrt((1 << (3 * work - 1)) // _pi(work))
*)
Definition pi (fuel : nat) (work : Z) : option Z :=
  do a <- arctan_of_inverse fuel 5 (work + 32);
  do b <- arctan_of_inverse fuel 239 (work + 32);
  Some (Z.shiftr (16 * a - 4 * b) 32).

Definition inverse_root_two_pi (fuel : nat) (work : Z) : option Z :=
  do p <- pi fuel work;
  Some (Z.sqrt (Z.shiftl 1 (3 * work - 1) / p)).

(*python sklearn_dp/_privacy/_noise.py
def _vanishes(numerator, denominator, precision):
    return 184 * numerator >= 128 * denominator * precision

def _alternating_bounds(first, error, numerator, denominator, stride, precision):
    spread = 185 * numerator // (128 * denominator) + 1
    work = precision + ((spread + 32) // WORD + 1) * WORD
    term = total = first(work)
    n = 0
    while term or n * denominator <= 2 * numerator:
        n += 1
        term = term * numerator // (denominator * n)
        total += (-term if n % 2 else term) // (1 + stride * n)
    slack = (n + 2) * (error + 2) << spread
    shift = work - precision
    return (total - slack) >> shift, ((total + slack) >> shift) + 1
*)
Definition vanishes (numerator denominator precision : Z) : bool :=
  128 * denominator * precision <=? 184 * numerator.

Definition spread_of (numerator denominator : Z) : Z := 185 * numerator / (128 * denominator) + 1.
Definition work_of (spread precision : Z) : Z := precision + ((spread + 32) / WORD + 1) * WORD.

Definition alternating_bounds (fuel : nat) (first : Z -> option Z)
  (error numerator denominator stride precision : Z) : option (Z * Z) :=
  let spread := spread_of numerator denominator in
  let work := work_of spread precision in
  do start <- first work;
  do (_, total, n) <- while fuel
    (fun '(term, total, n) => negb (term =? 0) || (n * denominator <=? 2 * numerator))%bool
    (fun '(term, total, n) =>
      let n := n + 1 in
      let term := term * numerator / (denominator * n) in
      (term, total + (if Z.odd n then - term else term) / (1 + stride * n), n))
    (start, start, 0);
  let slack := Z.shiftl ((n + 2) * (error + 2)) spread in
  let shift := work - precision in
  Some (Z.shiftr (total - slack) shift, Z.shiftr (total + slack) shift + 1).

(*python sklearn_dp/_privacy/_noise.py
def normal_tail_bounds(numerator, denominator, precision):
    square, twice = numerator**2, 2 * denominator**2
    if _vanishes(square, twice, precision):
        return 0, 1

    def first(work):
        return _inverse_root_two_pi(work) * numerator // denominator

    error = 2 * numerator // denominator + 4
    low, high = _alternating_bounds(first, error, square, twice, 2, precision)
    half = 1 << (precision - 1)
    return max(0, half - high), half - low

def exp_bounds(numerator, denominator, precision):
    if _vanishes(numerator, denominator, precision):
        return 0, 1
    low, high = _alternating_bounds(lambda work: 1 << work, 0, numerator, denominator, 0, precision)
    return max(0, low), high
*)
Definition normal_tail_bounds (fuel : nat) (numerator denominator precision : Z) :
  option (Z * Z) :=
  let square := numerator ^ 2 in
  let twice := 2 * denominator ^ 2 in
  if vanishes square twice precision then Some (0, 1)
  else
    let first work :=
      do c <- inverse_root_two_pi fuel work; Some (c * numerator / denominator) in
    let error := 2 * numerator / denominator + 4 in
    do (low, high) <- alternating_bounds fuel first error square twice 2 precision;
    let half := Z.shiftl 1 (precision - 1) in
    Some (Z.max 0 (half - high), half - low).

Definition exp_bounds (fuel : nat) (numerator denominator precision : Z) : option (Z * Z) :=
  if vanishes numerator denominator precision then Some (0, 1)
  else
    do (low, high) <-
      alternating_bounds fuel (fun work => Some (Z.shiftl 1 work)) 0 numerator denominator 0 precision;
    Some (Z.max 0 low, high).

(** ** A decision about a uniform number of which only some bits are known *)

(*python sklearn_dp/_privacy/_noise.py
def below(self, bounds):
    while True:
        low, high = bounds(self.bits + WORD)
        if (self.value + 1) << WORD <= low:
            return True
        if self.value << WORD >= high:
            return False
        self.value = self.value << WORD | self.more()
        self.bits += WORD
*)
(** The first bits of a number, and the word of bits that follows. *)
Definition first_bits (U : R) (bits : Z) : Z := Zfloor (U * bpow radix2 bits).
Definition more (U : R) (bits : Z) : Z :=
  first_bits U (bits + WORD) - Z.shiftl (first_bits U bits) WORD.

Fixpoint below (fuel : nat) (U : R) (value bits : Z) (bounds : Z -> option (Z * Z)) : option bool :=
  match fuel with
  | O => None
  | S fuel =>
      do (low, high) <- bounds (bits + WORD);
      if Z.shiftl (value + 1) WORD <=? low then Some true
      else if high <=? Z.shiftl value WORD then Some false
      else below fuel U (Z.lor (Z.shiftl value WORD) (more U bits)) (bits + WORD) bounds
  end.

(*python sklearn_dp/_privacy/_noise.py
def smallest_at_most(exceeds, guess, first):
    low, high, step = guess - 1, guess, 1
    while low >= first and not exceeds(low):
        low, high, step = low - step, low, 2 * step
    low = max(low, first - 1)
    while exceeds(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high
*)
Definition smallest_at_most (fuel : nat) (exceeds : Z -> bool) (guess first : Z) : option Z :=
  do (low, high, step) <- while fuel
    (fun '(low, high, step) => (first <=? low) && negb (exceeds low))%bool
    (fun '(low, high, step) => (low - step, low, 2 * step))
    (guess - 1, guess, 1);
  do (low, high, step) <- while fuel
    (fun '(low, high, step) => exceeds high)
    (fun '(low, high, step) => (high, high + step, 2 * step))
    (Z.max low (first - 1), high, step);
  do (low, high) <- while fuel
    (fun '(low, high) => 1 <? high - low)
    (fun '(low, high) =>
      let middle := (low + high) / 2 in if exceeds middle then (middle, high) else (low, middle))
    (low, high);
  Some high.

(** ** A draw *)

(** The magnitude that belongs to a tail probability U, rounded: the ideal z has tail(z) = U, and
    k - 1/2 <= sigma z <= k + 1/2. *)
Definition drawn (U sigma : R) (k : Z) : Prop :=
  (0 <= k)%Z
  /\ (tail ((IZR k + 1 / 2) / sigma) <= U)%R
  /\ (k = 0%Z \/ (U < tail ((IZR k - 1 / 2) / sigma))%R).

(*python sklearn_dp/_privacy/_noise.py
def half_integer_over(scale, k):
    return (2 * k + 1) * scale.denominator, 2 * scale.numerator
*)
(*python sklearn_dp/_privacy/_noise.py
def exact(self, word, scale, guess, more):
    lazy = LazyUniform(word & int(~SIGN), self.tail_bits, more)

    def exceeds(k):
        return lazy.below(partial(self.tail_bounds, *half_integer_over(scale, k)))
    return smallest_at_most(exceeds, guess, 0)

GAUSSIAN = _SymmetricLaw(64, ndtri, normal_tail_bounds)
*)
(** What the exact path decides at k, whatever bits of U are known when it is asked. A number that
    takes more than 2^17 words has a chance below 2^-8000000. *)
Definition decided (fuel : nat) (U : R) (numerator denominator k : Z) (answer : bool) : Prop :=
  exists words bits, (words <= fuel)%nat /\ Z.of_nat fuel <= 2 ^ 17 /\ 64 <= bits <= 2 ^ 23
    /\ below words U (first_bits U bits) bits
         (normal_tail_bounds fuel ((2 * k + 1) * denominator) (2 * numerator)) = Some answer.

(*python sklearn_dp/_privacy/_noise.py
def _rounded_part(self, law, block, part, scale):
    words = block.words[part]
    ideal, radius = (values[part] for values in block.transform(law))
    rounded, unsure = guarded_round(ideal, radius, scale)
    for i in unsure:
        exact_scale = Fraction(float(scale if scale.ndim == 0 else scale[i]))
        rounded[i] = law.exact(int(words[i]), exact_scale, int(rounded[i]), self._next_word)
    sign = words.view(np.int64) >> 63
    return (rounded ^ sign) - sign
*)
(*python sklearn_dp/_privacy/_noise.py
def transform(self, words):
    numerator = (words & ~SIGN) + 0.5
    ideal = -self.quantile(numerator * 2.0**-self.tail_bits)
    radius = _WIDTH / numerator
    radius += _ABS
    radius += _REL * ideal
    radius[numerator < _FEWEST] = np.inf
    return ideal, radius

def guarded_round(ideal, radius, scale):
    product = ideal * scale
    rounded = np.rint(product)
    product -= rounded
    np.abs(product, out=product)
    product += radius * scale
    return rounded.astype(np.int64), np.flatnonzero(product >= 0.5)
*)
Section Fast.
Open Scope R_scope.
Variables (ndtri : R -> R) (m : Z) (scale : R).

Definition numerator : R := fl (fl (IZR m) + 1 / 2).
Definition ideal : R := - ndtri (fl (numerator * bpow radix2 (- 64))).
Definition radius : R := fl (fl (fl (fl WIDTH / numerator) + ABS) + fl (REL * ideal)).
Definition rounded : Z := ZnearestE (fl (ideal * scale)).
Definition vouched : Prop :=
  FEWEST <= numerator
  /\ fl (Rabs (fl (fl (ideal * scale) - IZR rounded)) + fl (radius * scale)) < 1 / 2.

(** ASSUMED of SciPy's ndtri: relative to the ideal z it is off by less than 2^-45. *)
Definition ndtri_is_close : Prop :=
  forall p z, is_float p -> bpow radix2 (- 32) <= p <= 1 / 2 -> 0 <= z -> tail z = p ->
    Rabs (- ndtri p - z) <= bpow radix2 (- 45) * z.
End Fast.
