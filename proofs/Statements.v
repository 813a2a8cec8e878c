(** What is proved. Each statement is proved in Proved.v, and nothing else is claimed.

    Read before: Privacy.v (what privacy means), Noise.v (the law of the noise), Floats.v and Tables.v
    (what the Python code computes, beside it). *)

From Coq Require Import Reals List ZArith Permutation.
From Flocq Require Import Core.
From ReleasePath Require Import Constants Privacy Noise Floats Tables Sampler.
Import ListNotations.
Open Scope R_scope.

(** * 1. Clip and quantize, in double precision *)

(** A clipped row of integers is no longer than its limit. *)
Definition clipped_rows_are_short : Prop :=
  forall row limit,
    bpow radix2 (-500) <= limit <= bpow radix2 500 -> IZR (squares row) <= bpow radix2 100 ->
    IZR (squares (clip row limit)) <= limit ^ 2.

(** In Lloyd's iterations a residual is multiplied by its factor, in steps of 2^-10: no longer than
    its limit in these steps. *)
Definition clipped_residuals_are_short : Prop :=
  forall row limit,
    bpow radix2 (-500) <= limit <= bpow radix2 500 -> IZR (squares row) <= bpow radix2 100 ->
    IZR (squares (map (Z.mul (clip_factor (squares row) limit)) row))
    <= (limit * IZR (2 ^ WEIGHT_BITS)) ^ 2.

(** Nothing that is computed on the way overflows. *)
Definition steps_fit : Prop :=
  forall radius e row,
    is_float radius -> exponent_of radius e -> (Z.of_nat (length row) <= MOST_COLUMNS)%Z ->
    finite (fl (1 / unit_of e))
    /\ List.Forall (fun x => Rabs x <= radius) (shrunk radius row)
    /\ List.Forall (fun x => Z.abs x <= LIMIT)%Z (in_steps (unit_of e) radius row)
    /\ (squares (in_steps (unit_of e) radius row) < 2 ^ 63)%Z.

(** A quantized row is no longer than the bound, in steps of the grid; whatever the row is. *)
Definition quantized_rows_are_short : Prop :=
  forall radius e row,
    is_float radius -> exponent_of radius e -> (Z.of_nat (length row) <= MOST_COLUMNS)%Z ->
    IZR (squares (quantize (unit_of e) radius row)) <= (radius / unit_of e) ^ 2
    /\ steps_of (unit_of e) radius = radius / unit_of e.

(** The scale of the noise is never too small. *)
Definition sigma_is_never_too_small : Prop :=
  forall sensitivity rho,
    0 < sensitivity -> 0 < rho -> is_float rho ->
    sensitivity / sqrt (2 * rho) <= sigma_of sensitivity rho.

(** * 2. Sums over a table with one unit more, or one less *)

(** The order of rows, and how they are cut into chunks, parts and threads, makes no difference. *)
Definition sums_have_no_order : Prop :=
  forall A d (f : Z -> A -> list Z) (x x' : list (unit A)),
    Permutation (concat x) (concat x') -> total d f x = total d f x'.

(** What is claimed of a row holds for a unit, whatever is in the table besides. *)
Definition a_unit_moves_a_sum_by_its_claim : Prop :=
  forall A d scale s (f : Z -> A -> list Z) x x',
    (0 < scale)%Z -> claim d scale s f -> near scale x x' ->
    length (total d f x) = length (total d f x') /\ distance2 s (total d f x) (total d f x') <= 1.

(** The weights of the rows of a group make a whole unit. *)
Definition groups_are_units : Prop :=
  forall A (rows : list A),
    whole WEIGHT_STEPS (map (fun row => (WEIGHT_STEPS / Z.of_nat (length rows), row)%Z) rows).

(** The families of questions. *)
Definition claim_of_counts : Prop :=
  forall A n scale (cell : A -> nat), (0 < scale)%Z ->
    claim n scale (repeat (IZR scale) n) (counts n cell).

Definition claim_of_sums : Prop :=
  forall A scale k d radii (label : A -> nat) vector,
    (0 < scale)%Z -> length radii = k -> List.Forall (Rlt 0) radii ->
    (forall row, length (vector row) = d) ->
    (forall row r, nth_error radii (label row) = Some r -> IZR (squares (vector row)) <= r ^ 2) ->
    claim (k * d) scale (blocks d radii) (sums scale k d label vector).

Definition claim_of_moments : Prop :=
  forall A d limit diagonal off (vector : A -> list Z),
    0 < limit -> limit ^ 2 <= diagonal -> limit ^ 2 / sqrt 2 <= off ->
    (forall row, length (vector row) = d) ->
    (forall row, IZR (squares (vector row)) <= limit ^ 2) ->
    let s := upper_claims d diagonal off in
    claim (length s) WEIGHT_STEPS s (moments (root_of WEIGHT_STEPS) vector).

Definition claim_of_ranks : Prop :=
  forall A scale n d first length_ (bins : A -> list nat),
    (0 < scale)%Z -> 0 < length_ -> length first = n ->
    IZR (Z.of_nat d * squares first) <= length_ ^ 2 ->
    (forall row, length (bins row) = d /\ List.Forall (fun bin => bin <= n)%nat (bins row)) ->
    claim (d * n) scale (repeat (length_ * IZR scale) (d * n)) (ranks n first bins).

Definition claim_of_numbers : Prop :=
  forall A scale most (number : A -> Z),
    (0 < scale)%Z -> (0 < most)%Z -> (forall row, Z.abs (number row) <= most)%Z ->
    claim 1 scale [IZR (most * scale)] (numbers number).

(** Two statistics in one release: each over c times its claim. *)
Definition claim_of_both : Prop :=
  forall A scale d d' s s' c c' (f g : Z -> A -> list Z),
    claim d scale s f -> claim d' scale s' g -> 0 < c -> 0 < c' -> / c ^ 2 + / c' ^ 2 <= 1 ->
    claim (d + d') scale (map (Rmult c) s ++ map (Rmult c') s') (beside f g).

(** * 3. Gaussian noise, rounded *)

(** The law of v + round(sigma Z) is a law: the Gaussian integral is 1. *)
Definition noise_is_a_law : Prop :=
  forall sigmas v, List.Forall (Rlt 0) sigmas -> is_law (noisy sigmas v).

(** The rounded release with a sensitivity for each entry: rho-zCDP, and a Gaussian release. *)
Definition noise_is_private : Prop :=
  forall D (near : D -> D -> Prop) rho s sigmas (q : D -> list Z),
    0 < rho ->
    Forall2 (fun s sigma => 0 < s /\ s / sqrt (2 * rho) <= sigma) s sigmas ->
    (forall x x', near x x' -> length (q x) = length (q x') /\ distance2 s (q x) (q x') <= 1) ->
    zcdp near rho (fun x => noisy sigmas (q x))
    /\ gaussian_release near rho (fun x => noisy sigmas (q x)).

(** * 4. A whole fit *)

(** Costs add up, whatever is asked next after what has been published. *)
Definition costs_add_up : Prop :=
  forall D (near : D -> D -> Prop) budget (f : fit D),
    costs_at_most (zcdp near) budget f -> zcdp near budget (published f).

(** The exact curve, where all releases are Gaussian: what is asked next, and its scale, may depend on
    all that has been published, and rounding costs nothing. *)
Definition gaussian_fits_are_private : Prop :=
  forall D (near : D -> D -> Prop) rho mu epsilon (f : fit D),
    costs_at_most (gaussian_release near) rho f -> 0 < mu -> 2 * rho < mu ^ 2 ->
    dp near epsilon (curve mu (exp epsilon)) (published f).

(** The program's mu is as large as that. *)
Definition mu_is_never_too_small : Prop :=
  forall rho, 0 < rho -> is_float rho -> 0 < mu_from_rho rho /\ 2 * rho < mu_from_rho rho ^ 2.

(** From rho to epsilon at delta; every b is valid. *)
Definition epsilon_of (rho delta b : R) : R :=
  rho * (1 + b) - ln (1 + 1 / b) + (ln (1 / delta) - ln (1 + b)) / b.

Definition zcdp_is_dp : Prop :=
  forall D A (near : D -> D -> Prop) rho delta b (M : D -> law A),
    0 < delta -> 0 < b -> zcdp near rho M -> dp near (epsilon_of rho delta b) delta M.

(** What the program computes is no less, at whatever b its root search ends. *)
Definition epsilon_is_never_too_small : Prop :=
  forall log log1p rho delta b total,
    logarithms_are_close log log1p ->
    is_float rho -> bpow radix2 (-400) <= rho <= bpow radix2 400 ->
    is_float b -> bpow radix2 (-400) <= b <= bpow radix2 400 ->
    is_float delta -> 0 < delta < 1 ->
    let sizes := exact_sum (map Rabs (terms log log1p rho delta b)) in
    Rabs (total - sizes) <= bpow radix2 (-51) * sizes ->
    epsilon_of rho delta b <= computed_epsilon log log1p rho delta b total.

(** * 5. The sampler *)

(** Whatever the integer arithmetic returns are bounds of the tail probability. *)
Definition integer_bounds_are_bounds : Prop :=
  forall fuel numerator denominator precision low high,
    (0 <= numerator)%Z -> (0 < denominator)%Z -> (1 <= precision <= 2 ^ 24)%Z ->
    normal_tail_bounds fuel numerator denominator precision = Some (low, high) ->
    IZR low <= tail (IZR numerator / IZR denominator) * IZR (2 ^ precision) <= IZR high.

(** The same for exp(-x), of Laplace noise and of the exponential mechanism. *)
Definition exponential_bounds_are_bounds : Prop :=
  forall fuel numerator denominator precision low high,
    (0 <= numerator)%Z -> (0 < denominator)%Z -> (0 <= precision)%Z ->
    exp_bounds fuel numerator denominator precision = Some (low, high) ->
    IZR low <= exp (- (IZR numerator / IZR denominator)) * IZR (2 ^ precision) <= IZR high.

(** The exact path: the number that belongs to U, rounded. *)
Definition exact_path_is_right : Prop :=
  forall fuel U numerator denominator guess k exceeds,
    (0 < numerator)%Z -> (0 < denominator)%Z -> (0 <= guess)%Z ->
    (forall k, (0 <= k)%Z -> decided fuel U numerator denominator k (exceeds k)) ->
    smallest_at_most fuel exceeds guess 0 = Some k ->
    drawn U (IZR numerator / IZR denominator) k.

(** The path in double precision, where its error bound vouches for it: the same number, for all U
    that begin with the 63 bits m of a word. *)
Definition fast_path_is_right : Prop :=
  forall ndtri m scale U,
    ndtri_is_close ndtri ->
    (0 <= m < 2 ^ 63)%Z -> first_bits U 64 = m ->
    bpow radix2 (-900) <= scale <= MAX_SCALE -> vouched ndtri m scale ->
    drawn U scale (rounded ndtri m scale).

(** One number belongs to U, so both paths agree. *)
Definition one_number_is_drawn : Prop :=
  forall U sigma k k', 0 < sigma -> drawn U sigma k -> drawn U sigma k' -> k = k'.

(** The U between 0 and 1/2 to which k belongs are an interval, whose length is [chance]. A word is
    uniform: its first bit is the sign, the others begin U. So k and -k have the probability
    1/2 (chance / (1/2)) each, and 0, which has no sign, twice that: the law of round(sigma Z). *)
Definition draws_have_the_law : Prop :=
  forall sigma k, 0 < sigma -> (0 <= k)%Z ->
    let upper := if Z.eq_dec k 0 then 1 / 2 else tail ((IZR k - 1 / 2) / sigma) in
    let chance := upper - tail ((IZR k + 1 / 2) / sigma) in
    noise sigma k = (if Z.eq_dec k 0 then 2 * chance else chance)
    /\ noise sigma (- k)%Z = noise sigma k.

(** * The chain: from rows of floats to the published number *)

(** A row of d numbers. *)
Definition row (d : nat) := { x : list R | length x = d }.

(** The sum of rows clipped to a radius, with the noise that the program computes. *)
Definition noisy_sum (scale : Z) (d : nat) (radius rho : R) (e : Z) (x : list (unit (row d))) :
  law (list Z) :=
  let vector (r : row d) := quantize (unit_of e) radius (proj1_sig r) in
  noisy (repeat (sigma_of (steps_of (unit_of e) radius) rho) d)
    (total d (sums scale 1 d (fun _ => 0%nat) vector) x).

Definition release_path : Prop :=
  forall scale d radius rho e,
    (0 < scale)%Z -> (Z.of_nat d <= MOST_COLUMNS)%Z ->
    is_float radius -> exponent_of radius e -> is_float rho -> 0 < rho ->
    zcdp (near scale) rho (noisy_sum scale d radius rho e)
    /\ gaussian_release (near scale) rho (noisy_sum scale d radius rho e).

(** A fit of which such releases are the parts, each chosen by those before it, is
    (epsilon, delta)-DP with the epsilon that the program computes for their costs. *)
Definition fits_are_private : Prop :=
  forall D (near : D -> D -> Prop) (f : fit D) log log1p rho delta b total,
    costs_at_most (zcdp near) rho f ->
    logarithms_are_close log log1p ->
    is_float rho -> bpow radix2 (-400) <= rho <= bpow radix2 400 ->
    is_float b -> bpow radix2 (-400) <= b <= bpow radix2 400 ->
    is_float delta -> 0 < delta < 1 ->
    let sizes := exact_sum (map Rabs (terms log log1p rho delta b)) in
    Rabs (total - sizes) <= bpow radix2 (-51) * sizes ->
    dp near (computed_epsilon log log1p rho delta b total) delta (published f).
