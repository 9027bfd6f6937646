// This pass names the tensors of one stage of a rank, and says which of its actions read and write them.
//
// Time within a stage, for tensors that pass: the forward of every node, then, for each form of the backward,
// its calls (recomputation.h) and the all-reduce. The forms never live at the same time.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "pipeline/program/program.h"
#include "pipeline/program/recomputation.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {

class StageOperands {
 public:
  // `rank` has those of the rank's earlier stages. Everything referred to must outlive it.
  StageOperands(RankProgram& rank, const StepNetwork&, const Profile&, const Plan&, const Crossing&,
                const std::vector<Action>& of_rank, const Seat&, Mode);

  void add();

 private:
  friend class GradientTensors;

  int here() const { return seat_.stage; }
  bool local(int node) const { return position_[size_t(node)] >= 0; }
  int position(int node) const { return position_[size_t(node)]; }
  bool near(int stage) const { return own_stages_.contains(stage); }  // another one of the rank

  BufferId ring(Content, int node, const TensorSpec&);
  BufferId passing(Content, int node, const TensorSpec&, int first, int last);
  void read(Verb, BufferId);
  void write(Verb, BufferId);
  void write_back(BufferId);            // by backwards, but not by weight halves
  void read_back(BufferId);             // likewise
  void read_again(int node, BufferId);  // by the node's backward

  // Whether the stage's backward computes the node again.
  bool recomputes(int node) const { return std::ranges::binary_search(recomputed_, node); }
  bool read_again_by(int node, int output) const;
  bool outlives_forward(int node) const;
  int in_flight() const;
  int written_over_by(int node) const;
  void add_output(int node);
  void add_outputs();
  void add_stash();
  void add_statistics();
  void add_gradients();
  void share_gradient(const Route&);
  void add_backward(BackwardTensors&, const std::set<Verb>&);
  void add_recomputed(BackwardTensors&, const BackwardOrder&, bool parted);

  RankProgram& rank_;
  StageTensors& tensors_;
  const StepNetwork& network_;
  const Profile& profile_;
  const Plan& plan_;
  const Crossing& crossing_;
  const std::vector<Action>& of_rank_;
  const Seat seat_;
  const bool trains_;
  const std::vector<int>& nodes_;
  const std::vector<int> recomputed_;
  const std::vector<int> stage_of_;
  const std::vector<std::vector<int>> consumers_;
  std::vector<int> position_;      // in nodes_; −1 for those of other stages
  std::set<int> own_stages_;       // the rank's others
  std::set<int> sent_, received_;  // nodes whose outputs are
  int end_ = 0;                    // the last time so far
};

}  // namespace antichain
