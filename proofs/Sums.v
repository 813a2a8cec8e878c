(** Proofs about sums: how far one unit more moves each family of questions. *)

From Coq Require Import Reals List ZArith Lra Lia Permutation.
From Flocq Require Import Core.
From ReleasePath Require Import Constants Privacy Noise Floats Clip Tables.
Import ListNotations.
Open Scope R_scope.

(** ** Vectors *)

Lemma plus_length v w d : length v = d -> length w = d -> length (plus v w) = d.
Proof. revert v w. induction d as [|d IH]; intros [|k v] [|l w]; simpl; auto; try easy. Qed.

Lemma plus_comm v w : plus v w = plus w v.
Proof. revert w. induction v as [|k v IH]; intros [|l w]; simpl; auto. f_equal; [lia|auto]. Qed.

Lemma plus_assoc u v w : plus u (plus v w) = plus (plus u v) w.
Proof.
  revert v w. induction u as [|j u IH]; intros [|k v] [|l w]; simpl; auto. f_equal; [lia|auto].
Qed.

Lemma plus_0 v d : length v = d -> plus (repeat 0%Z d) v = v.
Proof. revert v. induction d as [|d IH]; intros [|k v]; simpl; auto; try easy. intros. f_equal; auto. Qed.

Lemma sum_length d vs : List.Forall (fun v => length v = d) vs -> length (sum d vs) = d.
Proof. intros H. induction H; simpl; [apply repeat_length|now apply plus_length]. Qed.

Lemma sum_app d vs ws : List.Forall (fun v => length v = d) ws ->
  List.Forall (fun v => length v = d) vs -> sum d (vs ++ ws) = plus (sum d vs) (sum d ws).
Proof.
  intros W H. induction H as [|v vs Hv _ IH]; simpl.
  - symmetry. apply plus_0. now apply sum_length.
  - rewrite IH. apply plus_assoc.
Qed.

(** The order of the rows, and how they are cut into parts, makes no difference. *)
Lemma sum_permutation d vs ws : Permutation vs ws -> sum d vs = sum d ws.
Proof.
  intros H. induction H; simpl; auto.
  - now f_equal.
  - now rewrite !plus_assoc, (plus_comm x).
  - congruence.
Qed.

Theorem order_does_not_matter {A} d f (x x' : list (unit A)) :
  Permutation (concat x) (concat x') -> total d f x = total d f x'.
Proof. intros H. now apply sum_permutation, Permutation_map. Qed.

(** ** Lengths *)

Lemma norm2_nonneg s v : 0 <= norm2 s v.
Proof.
  revert v. induction s as [|s1 s IH]; intros [|k v]; simpl; try lra.
  pose proof (pow2_ge_0 (IZR k / s1)). specialize (IH v). simpl in *. lra.
Qed.

Lemma norm2_0 s d : norm2 s (repeat 0%Z d) = 0.
Proof.
  revert d. induction s as [|s1 s IH]; intros [|d]; simpl; auto. rewrite IH. unfold Rdiv. ring.
Qed.

Lemma norm2_app s s' v v' : length s = length v ->
  norm2 (s ++ s') (v ++ v') = norm2 s v + norm2 s' v'.
Proof.
  revert v. induction s as [|s1 s IH]; intros [|k v] H; try easy; simpl; [lra|].
  rewrite IH by (now injection H). ring.
Qed.

Lemma norm2_map_scale c s v : c <> 0 -> List.Forall (Rlt 0) s ->
  norm2 (map (Rmult c) s) v = norm2 s v / c ^ 2.
Proof.
  intros Hc Hs. revert v. induction Hs as [|s1 s H1 _ IH]; intros [|k v]; simpl; try (field; lra).
  rewrite IH. field. lra.
Qed.

(** Cauchy and Schwarz, hence the triangle inequality. *)
Fixpoint inner (s : list R) (v w : list Z) : R :=
  match s, v, w with
  | s1 :: s, k :: v, l :: w => (IZR k / s1) * (IZR l / s1) + inner s v w
  | _, _, _ => 0
  end.

Lemma norm2_plus s v w : length v = length w ->
  norm2 s (plus v w) = norm2 s v + 2 * inner s v w + norm2 s w.
Proof.
  revert v w. induction s as [|s1 s IH]; intros [|k v] [|l w] H; try easy; simpl; try lra.
  rewrite IH by (now injection H). rewrite plus_IZR. unfold Rdiv. ring.
Qed.

Lemma cauchy s v w : inner s v w ^ 2 <= norm2 s v * norm2 s w.
Proof.
  revert v w. induction s as [|s1 s IH]; intros [|k v] [|l w]; simpl; try lra.
  - specialize (IH v w). pose proof (norm2_nonneg s v) as A. pose proof (norm2_nonneg s w) as B.
    set (a := IZR k / s1). set (b := IZR l / s1).
    set (c := inner s v w) in *. set (p := norm2 s v) in *. set (q := norm2 s w) in *.
    assert (2 * (a * b) * c <= a ^ 2 * q + p * b ^ 2).
    2: { apply Rle_trans with ((a * b) ^ 2 + 2 * (a * b) * c + c ^ 2); [right; ring|].
         apply Rle_trans with ((a * b) ^ 2 + (a ^ 2 * q + p * b ^ 2) + p * q); [lra|right; ring]. }
    assert (H : (2 * (a * b) * c) ^ 2 <= (a ^ 2 * q + p * b ^ 2) ^ 2).
    { apply Rle_trans with (4 * (a * b) ^ 2 * (p * q)).
      - replace ((2 * (a * b) * c) ^ 2) with (4 * (a * b) ^ 2 * c ^ 2) by ring.
        apply Rmult_le_compat_l; [pose proof (pow2_ge_0 (a * b)); lra|assumption].
      - pose proof (pow2_ge_0 (a ^ 2 * q - p * b ^ 2)). nra. }
    assert (0 <= a ^ 2 * q + p * b ^ 2).
    { pose proof (pow2_ge_0 a). pose proof (pow2_ge_0 b). nra. }
    apply Rnot_lt_le. intros L. nra.
Qed.

(** Vectors of lengths at most a and b have a sum of length at most a + b. *)
Lemma triangle s v w a b : length v = length w -> 0 <= a -> 0 <= b ->
  norm2 s v <= a ^ 2 -> norm2 s w <= b ^ 2 -> norm2 s (plus v w) <= (a + b) ^ 2.
Proof.
  intros L Ha Hb Hv Hw. rewrite norm2_plus by assumption. pose proof (cauchy s v w) as C.
  pose proof (norm2_nonneg s v). pose proof (norm2_nonneg s w).
  assert (inner s v w <= a * b); [|nra]. apply Rnot_lt_le. intros H1.
  assert (norm2 s v * norm2 s w <= a ^ 2 * b ^ 2) by (apply Rmult_le_compat; assumption).
  assert (0 <= a * b) by (now apply Rmult_le_pos).
  assert (a * b * (a * b) < inner s v w * inner s v w) by (apply Rmult_le_0_lt_compat; lra).
  simpl in *. lra.
Qed.

(** ** One unit more *)

Lemma distance2_plus s v w : length v = length w -> distance2 s v (plus v w) = norm2 s w.
Proof.
  revert v w. induction s as [|s1 s IH]; intros [|k v] [|l w] H; try easy; simpl.
  rewrite IH by (now injection H). replace (k - (k + l))%Z with (- l)%Z by ring.
  rewrite opp_IZR. unfold Rdiv. ring.
Qed.

Lemma distance2_sym s v w : distance2 s v w = distance2 s w v.
Proof.
  revert v w. induction s as [|s1 s IH]; intros [|k v] [|l w]; simpl; auto.
  rewrite IH. replace (k - l)%Z with (- (l - k))%Z by ring. rewrite opp_IZR. unfold Rdiv. ring.
Qed.

Lemma weights_nonneg {A} (u : unit A) : List.Forall (fun row => 0 <= fst row)%Z u ->
  (0 <= fold_right Z.add 0 (map fst u))%Z.
Proof. intros H. induction H; simpl; lia. Qed.

Lemma weights_sum {A} (u : unit A) scale : whole scale u ->
  List.Forall (fun row => 0 <= fst row <= scale)%Z u.
Proof.
  intros (P & S). revert scale S. induction P as [|[w row] u Hw P IH]; intros scale S; constructor.
  - apply weights_nonneg in P. simpl in *. lia.
  - simpl in *. apply IH. lia.
Qed.

Lemma unit_moves {A} d scale s f (u : unit A) : (0 < scale)%Z -> claim d scale s f ->
  List.Forall (fun row => 0 <= fst row <= scale)%Z u ->
  norm2 s (sum d (map (fun row => f (fst row) (snd row)) u))
  <= (IZR (fold_right Z.add 0%Z (map fst u)) / IZR scale) ^ 2.
Proof.
  intros Hs (_ & _ & L & C) H. apply IZR_lt in Hs.
  induction H as [|[w row] u Hw P IH]; simpl map; simpl fold_right; simpl sum.
  - rewrite norm2_0. unfold Rdiv. rewrite Rmult_0_l. lra.
  - rewrite plus_IZR, Rdiv_plus_distr. apply triangle; auto.
    + rewrite L. symmetry. apply sum_length, Forall_map, Forall_forall. auto.
    + apply Rmult_le_pos; [now apply IZR_le|left; now apply Rinv_0_lt_compat].
    + apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat]. apply IZR_le, weights_nonneg.
      apply Forall_impl with (2 := P). intros r (R0 & _). exact R0.
Qed.

Theorem one_unit {A} d scale s f (x x' : list (unit A)) :
  (0 < scale)%Z -> claim d scale s f -> near scale x x' ->
  length (total d f x) = length (total d f x') /\ distance2 s (total d f x) (total d f x') <= 1.
Proof.
  intros Hs C (l1 & u & l2 & W & H). pose proof C as (_ & _ & L & _).
  assert (F : forall y, List.Forall (fun v => length v = d)
    (map (fun row => f (fst row) (snd row)) y)) by (intros; apply Forall_map, Forall_forall; auto).
  assert (E : total d f (l1 ++ u :: l2)
    = plus (total d f (l1 ++ l2)) (sum d (map (fun row => f (fst row) (snd row)) u))).
  { unfold total. rewrite <- sum_app by apply F. apply sum_permutation.
    rewrite <- map_app. apply Permutation_map. rewrite !concat_app. simpl.
    rewrite <- app_assoc. apply Permutation_app_head, Permutation_app_comm. }
  assert (B : norm2 s (sum d (map (fun row => f (fst row) (snd row)) u)) <= 1).
  { apply Rle_trans with (1 := unit_moves d scale s f u Hs C (weights_sum u scale W)).
    apply IZR_lt in Hs. rewrite <- (pow1 2). apply pow_incr. split.
    - apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat]. apply IZR_le, weights_nonneg, W.
    - apply Rmult_le_reg_r with (IZR scale); [assumption|]. unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l, Rmult_1_l, Rmult_1_r by lra. apply IZR_le, W. }
  assert (L1 : forall y, length (total d f y) = d) by (intros; apply sum_length, F).
  assert (L2 : length (sum d (map (fun row => f (fst row) (snd row)) u)) = d)
    by (apply sum_length, F).
  split; [now rewrite !L1|].
  destruct H as [(-> & ->)|(-> & ->)].
  - rewrite E, distance2_plus; [assumption|congruence].
  - rewrite distance2_sym, E, distance2_plus; [assumption|congruence].
Qed.

(** Rows of a group: 2^20 / m, rounded down, for each of m rows. *)
Theorem group_weights {A} scale (rows : list A) : (0 <= scale)%Z ->
  whole scale (map (fun row => (scale / Z.of_nat (length rows), row)%Z) rows).
Proof.
  intros H. set (w := (scale / Z.of_nat (length rows))%Z). assert (0 <= w)%Z.
  { unfold w. destruct rows; [simpl; now rewrite Zdiv_0_r|]. apply Z.div_pos; simpl; lia. }
  split; [apply Forall_map, Forall_forall; auto|].
  assert (forall l : list A, fold_right Z.add 0 (map fst (map (fun row => (w, row)) l))
    = Z.of_nat (length l) * w)%Z as ->.
  { induction l as [|a l IH]; [easy|]. simpl map. simpl fold_right. rewrite IH.
    simpl length. lia. }
  unfold w. destruct rows; [simpl; lia|]. apply Z.mul_div_le. simpl; lia.
Qed.

(** ** Families of questions *)

Lemma block_length k d label v : length v = d -> length (block k d label v) = (k * d)%nat.
Proof.
  intros H. revert label. induction k as [|k IH]; intros [|label]; simpl; auto.
  - now rewrite app_length, repeat_length, H.
  - now rewrite app_length, repeat_length, IH.
Qed.

Lemma block_norm2 k d label v radii : length v = d -> length radii = k ->
  norm2 (blocks d radii) (block k d label v)
  = match nth_error radii label with Some r => norm2 (repeat r d) v | None => 0 end.
Proof.
  intros H. revert label radii. induction k as [|k IH]; intros label [|r radii] L; try easy.
  - now destruct label.
  - injection L as L. destruct label as [|label]; unfold blocks; simpl;
      rewrite norm2_app by (now rewrite ?repeat_length).
    + rewrite norm2_0. ring.
    + rewrite norm2_0, Rplus_0_l. now apply IH.
Qed.

Lemma blocks_length d radii : length (blocks d radii) = (length radii * d)%nat.
Proof.
  induction radii as [|r radii IH]; [easy|]. unfold blocks in *. simpl.
  now rewrite app_length, repeat_length, IH.
Qed.

Lemma blocks_pos d radii : List.Forall (Rlt 0) radii -> List.Forall (Rlt 0) (blocks d radii).
Proof.
  intros H. induction H as [|r radii Hr _ IH]; [constructor|]. apply Forall_app. split; [|assumption].
  apply Forall_forall. intros x Hx. apply repeat_spec in Hx. now subst.
Qed.

Lemma norm2_repeat r v d : length v = d -> 0 < r -> norm2 (repeat r d) v = IZR (squares v) / r ^ 2.
Proof.
  intros H Hr. revert v H. induction d as [|d IH]; intros [|k v] H; try easy; simpl.
  - unfold squares. simpl. field. lra.
  - rewrite squares_cons, plus_IZR, mult_IZR, IH by (now injection H). field. lra.
Qed.

Lemma share w scale : (0 < scale)%Z -> (0 <= w)%Z -> 0 <= IZR w / IZR scale.
Proof.
  intros H Hw. apply IZR_lt in H. apply IZR_le in Hw. apply Rmult_le_pos; [assumption|].
  left. now apply Rinv_0_lt_compat.
Qed.

Theorem counts_claim {A} n scale (cell : A -> nat) : (0 < scale)%Z ->
  claim n scale (repeat (IZR scale) n) (counts n cell).
Proof.
  intros Hs. apply IZR_lt in Hs as Hs'.
  assert (E : blocks 1 (repeat (IZR scale) n) = repeat (IZR scale) n).
  { unfold blocks. generalize (IZR scale). intros r. induction n as [|n IH]; [easy|].
    simpl. now f_equal. }
  split; [apply repeat_length|]. split; [|split].
  - apply Forall_forall. intros x Hx. apply repeat_spec in Hx. now subst.
  - intros w row. unfold counts. rewrite block_length by easy. lia.
  - intros w row Hw. unfold counts. rewrite <- E.
    rewrite block_norm2 by (easy || apply repeat_length).
    destruct nth_error as [r|] eqn:Hr; [|apply pow2_ge_0].
    apply nth_error_In, repeat_spec in Hr. subst. simpl. lra.
Qed.

Lemma quot_le a b : (0 < b)%Z -> Rabs (IZR (Z.quot a b)) <= Rabs (IZR a) / IZR b.
Proof.
  intros Hb. apply IZR_lt in Hb as Hb'. apply Rmult_le_reg_r with (IZR b); [assumption|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  rewrite <- !abs_IZR, <- mult_IZR. apply IZR_le.
  pose proof (Z.quot_abs a b ltac:(lia)) as E.
  rewrite (Z.abs_eq b) in E by lia. rewrite <- E. rewrite Z.mul_comm. apply Z.mul_quot_le; lia.
Qed.

Lemma weigh_squares scale w row : (0 < scale)%Z -> (0 <= w)%Z ->
  IZR (squares (weigh scale w row)) <= (IZR w / IZR scale) ^ 2 * IZR (squares row).
Proof.
  intros Hs Hw. pose proof (share w scale Hs Hw) as P. apply IZR_lt in Hs as Hs'.
  induction row as [|x row IH]; [unfold squares; simpl; lra|].
  simpl weigh. rewrite !squares_cons, !plus_IZR, Rmult_plus_distr_l.
  apply Rplus_le_compat; [|assumption]. rewrite !mult_IZR.
  pose proof (quot_le (x * w) scale Hs) as Q. rewrite mult_IZR, Rabs_mult, (Rabs_right (IZR w)) in Q
    by (apply Rle_ge, IZR_le, Hw).
  pose proof (Rabs_pos (IZR (Z.quot (x * w) scale))). pose proof (Rabs_pos (IZR x)).
  replace (Rabs (IZR x) * IZR w / IZR scale) with (IZR w / IZR scale * Rabs (IZR x)) in Q
    by (field; lra).
  apply Rle_trans with (Rabs (IZR (Z.quot (x * w) scale)) * Rabs (IZR (Z.quot (x * w) scale))).
  - rewrite <- Rabs_mult. apply Rle_abs.
  - apply Rle_trans with ((IZR w / IZR scale * Rabs (IZR x)) * (IZR w / IZR scale * Rabs (IZR x))).
    + apply Rmult_le_compat; assumption.
    + assert (Rabs (IZR x) * Rabs (IZR x) = IZR x * IZR x)
        by (rewrite <- Rabs_mult; apply Rabs_right; nra).
      rewrite <- H1. right. ring.
Qed.

Theorem sums_claim {A} scale k d (radii : list R) (label : A -> nat) (vector : A -> list Z) :
  (0 < scale)%Z -> length radii = k -> List.Forall (Rlt 0) radii ->
  (forall row, length (vector row) = d) ->
  (forall row r, nth_error radii (label row) = Some r -> IZR (squares (vector row)) <= r ^ 2) ->
  claim (k * d) scale (blocks d radii) (sums scale k d label vector).
Proof.
  intros Hs Hk Hr Hd H. split; [rewrite blocks_length; now subst|]. split; [now apply blocks_pos|].
  assert (L : forall w row, length (weigh scale w (vector row)) = d)
    by (intros; unfold weigh; now rewrite map_length).
  split; [intros; now apply block_length|].
  intros w row Hw. unfold sums. rewrite block_norm2 by auto.
  destruct nth_error as [r|] eqn:E; [|apply pow2_ge_0].
  assert (0 < r) by (apply nth_error_In in E; rewrite Forall_forall in Hr; auto).
  rewrite norm2_repeat by auto.
  apply Rmult_le_reg_r with (r ^ 2); [apply pow_lt; assumption|]. unfold Rdiv at 1.
  rewrite Rmult_assoc, Rinv_l, Rmult_1_r by (apply pow_nonzero; lra).
  apply Rle_trans with (1 := weigh_squares scale w (vector row) Hs ltac:(lia)).
  apply Rmult_le_compat_l; [apply pow2_ge_0|]. now apply H.
Qed.

(** *** Second moments *)

Lemma upper_length v : forall off diagonal,
  length (upper v) = length (upper_claims (length v) diagonal off).
Proof.
  intros off diagonal. induction v as [|a v IH]; [easy|]. simpl.
  rewrite !app_length, map_length, repeat_length. auto.
Qed.

Lemma upper_norm2 v diagonal off : 0 < diagonal -> diagonal / sqrt 2 <= off ->
  norm2 (upper_claims (length v) diagonal off) (upper v) <= (IZR (squares v) / diagonal) ^ 2.
Proof.
  intros Hd Ho. assert (S2 : 0 < sqrt 2) by (apply sqrt_lt_R0; lra).
  assert (0 < off) by (apply Rlt_le_trans with (2 := Ho); now apply Rdiv_lt_0_compat).
  assert (Q : diagonal ^ 2 <= 2 * off ^ 2).
  { assert (E : sqrt 2 * sqrt 2 = 2) by (apply sqrt_sqrt; lra).
    assert (diagonal <= off * sqrt 2).
    { apply Rmult_le_reg_r with (/ sqrt 2); [now apply Rinv_0_lt_compat|].
      rewrite Rmult_assoc, Rinv_r, Rmult_1_r by lra. exact Ho. }
    assert (diagonal * diagonal <= off * sqrt 2 * (off * sqrt 2)) by (apply Rmult_le_compat; lra).
    simpl. nra. }
  induction v as [|a v IH]; [unfold squares; simpl; lra|].
  simpl. rewrite norm2_app by (now rewrite map_length, repeat_length).
  rewrite norm2_repeat by (auto; apply map_length).
  assert (E : squares (map (Z.mul a) v) = (a * a * squares v)%Z).
  { clear. induction v as [|b v IH]; [unfold squares; simpl; lia|].
    simpl map. rewrite !squares_cons, IH. ring. }
  rewrite E, squares_cons, plus_IZR, !mult_IZR.
  set (x := IZR a * IZR a) in *. set (y := IZR (squares v)) in *.
  assert (0 <= x) by (unfold x; nra).
  assert (0 <= y) by (apply IZR_le, squares_nonneg).
  assert (x * y / off ^ 2 <= 2 * x * y / diagonal ^ 2).
  { replace (2 * x * y / diagonal ^ 2) with (x * y * (2 / diagonal ^ 2)) by (field; lra).
    apply Rmult_le_compat_l; [now apply Rmult_le_pos|].
    apply Rmult_le_reg_r with (off ^ 2 * diagonal ^ 2).
    - apply Rmult_lt_0_compat; apply pow_lt; assumption.
    - replace (/ off ^ 2 * (off ^ 2 * diagonal ^ 2)) with (diagonal ^ 2) by (field; lra).
      replace (2 / diagonal ^ 2 * (off ^ 2 * diagonal ^ 2)) with (2 * off ^ 2) by (field; lra).
      assumption. }
  apply Rle_trans with ((x / diagonal) ^ 2 + 2 * x * y / diagonal ^ 2 + (y / diagonal) ^ 2).
  - simpl in *. lra.
  - right. field. lra.
Qed.

Theorem moments_claim {A} scale d limit diagonal off (root : Z -> Z) (vector : A -> list Z) :
  (0 < scale)%Z -> 0 < limit -> limit ^ 2 <= diagonal -> limit ^ 2 / sqrt 2 <= off ->
  (forall row, length (vector row) = d) ->
  (forall row, IZR (squares (vector row)) <= limit ^ 2) ->
  (forall w, (0 <= w <= scale)%Z -> (0 <= root w)%Z
     /\ (IZR (root w) / IZR (2 ^ root_bits)) ^ 2 <= IZR w / IZR scale) ->
  claim (length (upper_claims d diagonal off)) scale (upper_claims d diagonal off)
    (moments root vector).
Proof.
  intros Hs Hl Hdiag Hoff Hd H Hroot.
  assert (0 < limit ^ 2) by (now apply pow_lt). assert (0 < sqrt 2) by (apply sqrt_lt_R0; lra).
  assert (0 < off) by (apply Rlt_le_trans with (2 := Hoff); now apply Rdiv_lt_0_compat).
  split; [reflexivity|]. split; [|split].
  - clear - H0 H2 Hdiag. induction d as [|d IH]; [constructor|]. simpl. constructor; [lra|].
    apply Forall_app. split; [|assumption]. apply Forall_forall. intros x Hx.
    apply repeat_spec in Hx. now subst.
  - intros w row. unfold moments. rewrite (upper_length _ off diagonal).
    unfold weigh. now rewrite map_length, Hd.
  - intros w row Hw. unfold moments. destruct (Hroot w Hw) as (R0 & R1).
    set (v := weigh (2 ^ root_bits) (root w) (vector row)).
    assert (Lv : length v = d) by (unfold v, weigh; now rewrite map_length).
    assert (S : IZR (squares v) <= IZR w / IZR scale * limit ^ 2).
    { apply Rle_trans with (1 := weigh_squares (2 ^ root_bits) _ (vector row) eq_refl R0).
      apply Rmult_le_compat; [apply pow2_ge_0|apply IZR_le, squares_nonneg|exact R1|apply H]. }
    apply Rle_trans with (norm2 (upper_claims d (limit ^ 2) (limit ^ 2 / sqrt 2)) (upper v)).
    + (* larger claims, smaller lengths *)
      clear - H0 H1 Hdiag Hoff. revert d. generalize (upper v) as z. intros z d.
      assert (M : forall s s', Forall2 (fun a b => 0 < a <= b) s s' ->
        forall z, norm2 s' z <= norm2 s z).
      { clear. intros s s' F. induction F as [|a b s s' Hab _ IH]; intros [|k z]; simpl; try lra.
        specialize (IH z).
        assert ((IZR k / b) ^ 2 <= (IZR k / a) ^ 2); [|simpl in *; lra].
        rewrite <- (pow2_abs (IZR k / b)), <- (pow2_abs (IZR k / a)). apply pow_incr.
        split; [apply Rabs_pos|]. unfold Rdiv. rewrite !Rabs_mult.
        apply Rmult_le_compat_l; [apply Rabs_pos|].
        rewrite !Rabs_right by (left; apply Rinv_0_lt_compat; lra). apply Rinv_le_contravar; lra. }
      apply M. assert (0 < limit ^ 2 / sqrt 2) by (now apply Rdiv_lt_0_compat).
      induction d as [|d IH]; [constructor|]. cbn [upper_claims]. constructor; [lra|].
      apply Forall2_app; [|assumption]. clear - H Hoff.
      induction d as [|d IH]; constructor; [lra|assumption].
    + rewrite <- Lv. apply Rle_trans with (1 := upper_norm2 v _ _ H0 (Rle_refl _)).
      apply pow_incr. split.
      * apply Rmult_le_pos; [apply IZR_le, squares_nonneg|left; now apply Rinv_0_lt_compat].
      * apply Rmult_le_reg_r with (limit ^ 2); [assumption|]. unfold Rdiv at 1.
        rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. assumption.
Qed.

(** The root of a weight is never too long: sqrt(w 2^20) is no integer, or no nearer to one than
    its rounding could reach. *)
Lemma root_is_short w : (0 <= w <= 2 ^ 20)%Z ->
  (0 <= root_of (2 ^ 20) w)%Z
  /\ (IZR (root_of (2 ^ 20) w) / IZR (2 ^ root_bits)) ^ 2 <= IZR w / IZR (2 ^ 20).
Proof.
  intros Hw. unfold root_of, root_bits. set (x := IZR w / IZR (2 ^ 20)).
  assert (X : x = IZR w * bpow radix2 (-20)) by reflexivity.
  assert (Ex : fl x = x).
  { apply fl_id. rewrite X. apply generic_format_FLT. exists (Float radix2 w (-20)).
    - unfold F2R. simpl. ring.
    - simpl. lia.
    - simpl. lia. }
  rewrite Ex. set (m := Zfloor _).
  destruct (Z.eq_dec w 0) as [W0|W0].
  { subst m. rewrite X, W0, Rmult_0_l, sqrt_0, fl_0, Rmult_0_l, Zfloor_IZR.
    split; [lia|]. simpl. lra. }
  assert (W1 : 1 <= IZR w) by (apply IZR_le; lia).
  assert (W2 : IZR w <= 2 ^ 20) by (rewrite pow_IZR; apply IZR_le; simpl; lia).
  assert (B : bpow radix2 (-20) = / 2 ^ 20) by (simpl; lra). rewrite B in X.
  assert (S : sqrt x * sqrt x = x) by (apply sqrt_sqrt; lra).
  assert (S0 : bpow radix2 (-10) <= sqrt x).
  { rewrite <- (sqrt_square (bpow radix2 (-10))) by apply bpow_ge_0. apply sqrt_le_1; try lra.
    - rewrite <- bpow_plus. apply bpow_ge_0.
    - rewrite <- bpow_plus. simpl (_ + _)%Z. lra. }
  destruct (fl_err_pos (sqrt x)) as (E0 & E1).
  { apply Rle_trans with (2 := S0). apply bpow_le. lia. }
  pose proof (bpow_gt_0 radix2 (-10)).
  assert (M : IZR m <= fl (sqrt x) * bpow radix2 20) by apply Zfloor_lb.
  replace (bpow radix2 20) with (2 ^ 20) in M by (simpl; lra).
  assert (M0 : (0 <= m)%Z).
  { apply Zfloor_lub. apply Rmult_le_pos; [lra|apply bpow_ge_0]. }
  split; [assumption|]. apply IZR_le in M0 as M0'.
  assert (Q : IZR (m * m) < IZR (w * 2 ^ 20 + 1)).
  { rewrite plus_IZR, !mult_IZR. replace (IZR (2 ^ 20)) with (2 ^ 20) by (simpl; lra).
    assert (IZR m <= 2 ^ 20 * (1 + / 2 ^ 53) * sqrt x) by lra.
    assert (IZR m * IZR m <= 2 ^ 20 * (1 + / 2 ^ 53) * sqrt x * (2 ^ 20 * (1 + / 2 ^ 53) * sqrt x))
      by (apply Rmult_le_compat; assumption).
    replace (2 ^ 20 * (1 + / 2 ^ 53) * sqrt x * (2 ^ 20 * (1 + / 2 ^ 53) * sqrt x))
      with ((2 ^ 20) ^ 2 * (1 + / 2 ^ 53) ^ 2 * (sqrt x * sqrt x)) in * by ring.
    rewrite S, X in *. lra. }
  apply lt_IZR in Q. assert (Q' : (m * m <= w * 2 ^ 20)%Z) by lia. apply IZR_le in Q'.
  rewrite !mult_IZR in Q'. replace (IZR (2 ^ 20)) with (2 ^ 20) in * by (simpl; lra).
  rewrite X. simpl (_ ^ 2). lra.
Qed.

(** *** Ranks, numbers, statistics side by side *)

Lemma squares_app v w : squares (v ++ w) = (squares v + squares w)%Z.
Proof. induction v as [|x v IH]; [reflexivity|]. simpl app. rewrite !squares_cons, IH. lia. Qed.

Lemma squares_repeat n : squares (repeat 0%Z n) = 0%Z.
Proof. induction n as [|n IH]; [reflexivity|]. simpl repeat. now rewrite squares_cons, IH. Qed.

Lemma squares_firstn n v : (squares (firstn n v) <= squares v)%Z.
Proof.
  revert v. induction n as [|n IH]; intros [|x v]; simpl firstn; try lia.
  - apply squares_nonneg.
  - rewrite !squares_cons. specialize (IH v). lia.
Qed.

Lemma squares_scale w v : squares (map (Z.mul w) v) = (w * w * squares v)%Z.
Proof.
  induction v as [|b v IH]; [unfold squares; simpl; lia|]. simpl map.
  rewrite !squares_cons, IH. ring.
Qed.

Theorem ranks_claim {A} scale n d first length_ (bins : A -> list nat) :
  (0 < scale)%Z -> 0 < length_ -> length first = n ->
  IZR (Z.of_nat d * squares first) <= length_ ^ 2 ->
  (forall row, length (bins row) = d /\ List.Forall (fun bin => bin <= n)%nat (bins row)) ->
  claim (d * n) scale (repeat (length_ * IZR scale) (d * n)) (ranks n first bins).
Proof.
  intros Hs Hl Hn H Hb. apply IZR_lt in Hs as Hs'.
  assert (L : forall w row, length (ranks n first bins w row) = (d * n)%nat).
  { intros w row. unfold ranks. destruct (Hb row) as (<- & F). clear - F Hn.
    induction F as [|b bs Hb _ IH]; [reflexivity|].
    simpl. rewrite app_length, map_length, IH. unfold shifted.
    rewrite app_length, repeat_length, firstn_length. lia. }
  split; [apply repeat_length|]. split; [|split; [assumption|]].
  - apply Forall_forall. intros x Hx. apply repeat_spec in Hx. subst. now apply Rmult_lt_0_compat.
  - intros w row Hw. rewrite norm2_repeat by (auto; now apply Rmult_lt_0_compat).
    assert (S : (squares (ranks n first bins w row) <= w * w * (Z.of_nat d * squares first))%Z).
    { unfold ranks. destruct (Hb row) as (<- & _). clear.
      induction (bins row) as [|b bs IH]; [unfold squares; simpl; lia|].
      simpl concat. rewrite squares_app, squares_scale. unfold shifted at 1.
      rewrite squares_app, squares_repeat. pose proof (squares_firstn (n - b) first).
      simpl length. rewrite Nat2Z.inj_succ.
      assert (0 <= w * w)%Z by nia. nia. }
    apply IZR_le in S. rewrite !mult_IZR in S. rewrite mult_IZR in H.
    apply Rmult_le_reg_r with ((length_ * IZR scale) ^ 2);
      [apply pow_lt; now apply Rmult_lt_0_compat|].
    unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r
      by (apply pow_nonzero; apply Rgt_not_eq; now apply Rmult_lt_0_compat).
    replace ((IZR w / IZR scale) ^ 2 * (length_ * IZR scale) ^ 2)
      with (IZR w * IZR w * length_ ^ 2) by (field; lra).
    apply Rle_trans with (1 := S). apply Rmult_le_compat_l; [nra|assumption].
Qed.

Theorem numbers_claim {A} scale most (number : A -> Z) :
  (0 < scale)%Z -> (0 < most)%Z -> (forall row, (Z.abs (number row) <= most)%Z) ->
  claim 1 scale [IZR (most * scale)] (numbers number).
Proof.
  intros Hs Hm H. apply IZR_lt in Hs as Hs'. apply IZR_lt in Hm as Hm'.
  split; [reflexivity|]. rewrite mult_IZR. split; [|split; [reflexivity|]].
  - constructor; [now apply Rmult_lt_0_compat|constructor].
  - intros w row Hw. simpl. rewrite Rplus_0_r, !Rmult_1_r, mult_IZR.
    specialize (H row). apply IZR_le in H. rewrite abs_IZR in H.
    assert (E : IZR w * IZR (number row) / (IZR most * IZR scale)
      = IZR w / IZR scale * (IZR (number row) / IZR most)) by (field; lra).
    rewrite E. pose proof (share w scale Hs ltac:(lia)).
    assert (B : Rabs (IZR (number row) / IZR most) <= 1).
    { unfold Rdiv. rewrite Rabs_mult, Rabs_inv, (Rabs_right (IZR most)) by lra.
      apply Rmult_le_reg_r with (IZR most); [assumption|].
      rewrite Rmult_assoc, Rinv_l; lra. }
    apply Rabs_le_inv in B. set (a := IZR w / IZR scale) in *. set (b := IZR (number row) / IZR most) in *.
    assert (b * b <= 1) by nra. assert (0 <= a * a) by nra. nra.
Qed.

(** Each over c times its claim, where the sum of 1 / c^2 is at most 1. *)
Theorem beside_claim {A} scale d d' s s' c c' (f g : Z -> A -> list Z) :
  claim d scale s f -> claim d' scale s' g -> 0 < c -> 0 < c' -> / c ^ 2 + / c' ^ 2 <= 1 ->
  claim (d + d') scale (map (Rmult c) s ++ map (Rmult c') s') (beside f g).
Proof.
  intros (A1 & A2 & A3 & A4) (B1 & B2 & B3 & B4) Hc Hc' H.
  assert (P : forall c s, 0 < c -> List.Forall (Rlt 0) s -> List.Forall (Rlt 0) (map (Rmult c) s)).
  { intros e t He Ht. apply Forall_map. apply Forall_impl with (2 := Ht). intros x Hx.
    now apply Rmult_lt_0_compat. }
  split; [rewrite app_length, !map_length; congruence|]. split; [apply Forall_app; auto|].
  unfold beside. split; [intros; rewrite app_length; congruence|].
  intros w row Hw. rewrite norm2_app by (rewrite map_length; congruence).
  rewrite !norm2_map_scale by (assumption || lra). specialize (A4 w row Hw). specialize (B4 w row Hw).
  pose proof (pow2_ge_0 (IZR w / IZR scale)). set (z := (IZR w / IZR scale) ^ 2) in *.
  assert (0 < / c ^ 2) by (apply Rinv_0_lt_compat, pow_lt; assumption).
  assert (0 < / c' ^ 2) by (apply Rinv_0_lt_compat, pow_lt; assumption).
  unfold Rdiv.
  assert (norm2 s (f w row) * / c ^ 2 <= z * / c ^ 2) by (apply Rmult_le_compat_r; lra).
  assert (norm2 s' (g w row) * / c' ^ 2 <= z * / c' ^ 2) by (apply Rmult_le_compat_r; lra).
  assert (z * (/ c ^ 2 + / c' ^ 2) <= z * 1) by (apply Rmult_le_compat_l; assumption). lra.
Qed.
