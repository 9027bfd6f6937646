// A Program is a step with its operands named. A schedule says who does what and when; the program adds, for
// each rank, the buffers that hold the step's tensors, and, for each action, which of them it reads and
// writes. It is compiled once, by passes, and everything that asks which tensors an action touches reads it
// here:
//
//   Schedule, Plan, StepNetwork ─▶ operands ▸ versions ▸ rings ─▶ Program
//             Program ─▶ runner · rehearsal · order of messages · predicted memory · text
//
//   operands   stage_operands.cpp     which tensors outlive an action, and what reads and writes them
//              gradient_tensors.cpp   how gradients are folded within a backward
//              weight_folds.cpp       how those of shared weights are folded after all backwards
//              recomputation.cpp      when what was not kept is computed again
//   versions   weight_versions.cpp    which weights each forward and backward reads
//   rings      rings.cpp              how many copies each needs, and when a receive may be posted
//
// A tensor lives in one of two ways:
//
//   ring       a copy per micro-batch in flight; the rank's n-th micro-batch has copy n mod copies. Kept
//              outputs, the stash, received and sent tensors, and statistics are rings.
//   passing    it is born and dies within one action, and shares an arena with all others that do, by
//              lifetime: outputs that no backward reads again, gradients on their way through the stage,
//              and, as these go, other replicas' gradients.
//
// A rank's stages take turns in one arena, because they compute one after the other. Two stages of a rank
// that share a tensor use the same ring, so nothing is copied between them.
//
// A feature that changes what a step keeps is a pass here. Recomputation inserts second forwards into the
// backward, and the lifetimes, so the copies, follow.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/program/arena.h"
#include "pipeline/program/step_network.h"
#include "pipeline/schedule/compute_order.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

using BufferId = int;
constexpr BufferId no_buffer = -1;

enum class Content { input, output, received, stash, statistics, gradient, term, weight };

struct Buffer {
  Content content = Content::output;
  int stage = 0;
  int node = -1;           // whose tensor, or whose gradient, it holds; −1 for what is of all nodes
  TensorSpec spec;         // of one copy
  int replicas = 1;        // micro-batch m is in copy m / replicas mod copies
  int copies = 0;          // of a ring
  Lifetime lifetime = {};  // of a passing tensor, within its stage's actions (stage_operands.h)
  bool passing = false;
};

// A Contribution says how the gradient of one local consumer enters the fold over all consumers of a tensor.
// First the received terms, then the kernel's own are added to the sum; whichever is the fold's first is
// written instead. A kernel that adds to the sum itself (Lowering::adds_dx) needs no term beside it, and the
// bits are the same.
struct Contribution {
  bool wanted = false;                        // whether the input's gradient is wanted at all
  bool starts = false;                        // the sum is still empty
  bool adds = false;                          // the kernel does
  std::vector<Message> received_before = {};  // remote terms between the previous local one and this one
  BufferId sum = no_buffer;                   // where the fold accumulates
  BufferId term = no_buffer;                  // where the kernel writes when it does not start the fold
  bool left = false;                          // the term is left there: OutputGradient::term

  bool first() const { return starts && received_before.empty(); }
  bool written_directly() const { return adds || first(); }
  Into into() const { return adds && !first() ? Into::accumulate : Into::overwrite; }
};

// An OutputGradient is what the fold of a node's own output gradient still lacks when its backward comes.
struct OutputGradient {
  BufferId sum = no_buffer;  // none where the only term is a message: dy is the received tensor
  std::vector<Message> received_after = {};  // remote terms after the last local one
  bool starts = false;                       // the sum is still empty: no consumer is local
  // The fold's last term, where the node's own kernel adds it as it reads the sum (Lowering::adds_dy), which
  // saves a pass over both. The bits are the same.
  BufferId term = no_buffer;
};

// BackwardTensors are the gradients of one form of a stage's backward. A whole backward is one action, within
// which they are born and die. A parted one is two actions, and the later one, for the weights, reads the
// gradients of its nodes' outputs again.
//
// Where the plan does not keep a node's output, this backward computes it again, and reads what is here.
struct BackwardTensors {
  std::map<int, std::vector<Contribution>> contributions;  // per own node, one per input
  std::map<int, OutputGradient> gradient;                  // per own node
  // Per node whose backward has such calls before it: the nodes whose forwards run again, ascending.
  std::map<int, std::vector<int>> again;
  std::map<int, BufferId> output;  // of these nodes, like what follows
  std::map<int, std::vector<BufferId>> stash, statistics;
};

// Statistics of a node lie at `begin_bytes` of the stage's block of all statistics.
struct StatisticsPart {
  int64_t begin_bytes = 0;
  TensorSpec spec;
};

// StageTensors say which buffer holds which tensor of one stage of a rank.
struct StageTensors {
  // There is one per node: outputs of own nodes, loaded inputs, received activations, and outputs of the
  // rank's other stages.
  std::map<int, BufferId> output;
  std::map<int, std::vector<BufferId>> stash;
  BufferId all_statistics = no_buffer;  // a block for each micro-batch of the step, other replicas' too
  std::map<int, std::vector<StatisticsPart>> statistics;
  BackwardTensors whole, parted;  // each is empty where the schedule has no such backward of the stage
  // Returns that of the form which has the verb, a backward or one of its halves.
  const BackwardTensors& backward(Verb verb) const { return verb == Verb::backward ? whole : parted; }
  // These are gradients; activations are in `output`. Where both stages are the rank's own, nothing travels:
  // what the later stage "sent" is what the earlier one "received".
  std::map<Message, BufferId> sent, received;
  // For each bucket of gradients: room for what each other replica sends (pipeline/run/replica_sum.h).
  std::vector<std::vector<BufferId>> terms;
};

// A WeightRun is the part of the fold of a shared weight's gradient that one rank does without a word from
// others: it takes what it received, if anything, and adds the gradients of its own uses.
struct WeightRun {
  std::vector<ParamUse> uses = {};  // in the order of the fold
  BufferId received = no_buffer;    // the fold before these uses; none where they begin it
  BufferId sent = no_buffer;        // the fold with them; none where no other rank wants it
};

// A WeightFold is what one rank does for one shared weight. The weight and its slots are there once, at the
// rank's first use of it, and every use has a gradient.
struct WeightFold {
  ParamUse first;
  std::vector<WeightRun> runs;
  BufferId total = no_buffer;  // where the whole gradient is received; none where the last run makes it
};

struct Operands {
  std::vector<BufferId> reads, writes;  // rings only
};

// A WeightVersion says which of a stage's weights a forward or a backward reads.
struct WeightVersion {
  int behind = 0;  // how many updates older than the newest they are
  int ahead = 0;   // by how many steps they are predicted from there; 0: they are as they were
};

struct Instruction : Action {
  std::span<const BufferId> reads, writes;
  int channel = -1;  // of a message: with the micro-batch, its name between the two ranks
  // Of a recv: the index of the instruction after which nothing needs what its copy held before, so that the
  // receive may be posted; −1 where the copy is free from the beginning.
  int freed_by = -1;
  int step = 0;                // of those that the schedule has in a row
  WeightVersion weights = {};  // that a forward or a backward reads
};

struct RankProgram {
  RankProgram() = default;
  RankProgram(RankProgram&&) = default;  // not copied, because instructions refer to its operands

  RankSeats seats;
  std::vector<Buffer> buffers;
  std::map<int, StageTensors> stages;
  std::vector<WeightFold> weight_folds;                  // where it trains
  std::map<std::pair<Message, bool>, BufferId> weights;  // buffers of these folds, by whether it is sent
  std::vector<Instruction> instructions;
  // Instructions refer to these: those of a stage's verb, and those of a stage's message, by whether it is
  // sent.
  std::map<std::pair<int, Verb>, Operands> of_compute;
  std::map<std::pair<std::pair<int, Message>, bool>, Operands> of_messages;
};

struct Program {
  const Schedule* schedule = nullptr;  // which it was compiled from, and which outlives it
  int channels = 0;                    // that messages have
  std::vector<RankProgram> ranks;
};

// In memory of a device's own, the next micro-batch's input is copied while one is computed.
enum class Feed { when_loaded, one_ahead };

// The plan and the schedule must be valid for the profile, and the schedule must outlive the program. Throws
// Error when a node that needs a gradient has no loss behind it, and for two stages that are on one rank in
// some micro-batches only.
Program compile(const Schedule&, const Profile&, const Plan&, const StepNetwork&, Mode,
                Feed = Feed::when_loaded);
// Compiles it as far as a profile tells, for training where the schedule has backwards.
Program compile(const Schedule&, const Profile&, const Plan&);

// Prints one line an instruction, after a line for each rank:
//
//   rank 1
//     1R0:a2<0  writes relu[0]
//     1F0  reads relu[0]  writes conv.stash[0]
//
// The number in brackets is the copy.
std::string print(const Program&, const StepNetwork&);

}  // namespace antichain
