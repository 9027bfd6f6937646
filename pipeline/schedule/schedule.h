// A schedule says who does what when: it has a list of actions for each rank, as data. It prints, parses,
// validates, simulates, draws and runs, and no schedule is ever written a second time as loops.
//
//   compute order (a policy's)  |>  loads and messages  |>  updates  |>  validate
//
// One action prints as one word: 0F3 is stage 0's forward of micro-batch 3. The legend of all words is in
// pipeline/schedule/schedule_text.cpp beside the table that prints and parses them; docs/schedules.md has
// pictures.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "partition/plan/plan.h"

namespace antichain {

struct PredictionMethod;

enum class Verb {
  load,             // L  put the micro-batch's samples into the input nodes this stage uses
  recv,             // R  wait until a message has arrived (it was posted earlier)
  forward,          // F  all nodes of the stage
  backward,         // B  both halves
  backward_input,   // I  input gradients only (zero-bubble schedules)
  backward_weight,  // W  weight gradients only
  send,             // S  post a message
  // A: wait until weight gradients are added up over the stage's replicas (all-reduce). Adding up begins when
  // the last of these gradients is there (pipeline/schedule/gradient_buckets.h).
  reduce,
  // V: wait until all ranks have agreed whether to update. A rank has one a step, after all its gradients, or
  // none.
  vote,
  update,  // U  absorb statistics, update weights
};
bool computes(Verb);  // forward, backward or a half of it
// Says whether several ranks do the action together: the ranks of a stage do a reduce, and all ranks do a
// vote.
constexpr bool joins(Verb verb) { return verb == Verb::reduce || verb == Verb::vote; }

enum class Flow { activation, gradient, weight };

// A Message is what travels: the output of node `tensor` for one micro-batch, a gradient of it, or the
// gradient of a weight that several nodes have. The gradient of an output is the left fold over a run of
// consumers; `consumer` is the run's last (lowest) node. For activations it is −1, but where a rank has
// several stages that use the tensor it is the lowest node of the stage that receives. A stage may pre-sum
// only the run of consumers that starts the fold (the highest nodes). Others travel singly, so that the sum
// is folded in the same order whatever the cut.
//
// The gradient of a shared weight is the left fold over its uses in descending order, after the last
// micro-batch. The message has the fold down to node `tensor`, whose parameter of the index `consumer` it is.
// What is folded down to the first use is the whole gradient, which goes to every other rank that has the
// weight. Replica j of a stage gets it from replica j mod r of the r that the sending stage has, and j stands
// for the micro-batch.
struct Message {
  Flow flow = Flow::activation;
  int tensor = -1;
  int consumer = -1;
  auto operator<=>(const Message&) const = default;
};

struct Action {
  Verb verb = Verb::forward;
  int stage = 0;
  int microbatch = -1;  // of all replicas and steps; −1 for reduce, vote and update
  Message message;      // of send and recv
  int peer = -1;        // rank, of send and recv
  int bucket = -1;      // of reduce; −1 where all weights of the stage are one bucket
  auto operator<=>(const Action&) const = default;
};

struct Schedule {
  int microbatches = 0;
  std::vector<std::vector<Action>> ranks;
  // A schedule may be of several steps in a row, between which the pipeline does not drain. Each has equally
  // many micro-batches, which count on, and an update. There may be fewer steps: all others are left out
  // (first_steps).
  int steps = 1;
  // Where training is asynchronous: by stage, how many updates the weights that it trains with are older than
  // in synchronous training. A step's forwards read them whether or not newer ones are there already, so bits
  // depend neither on time nor on where the pipeline drains. Else it is empty.
  std::vector<int> delays = {};
  bool stashes = true;  // whether backwards read the same weights; else they read the newest
  const PredictionMethod* predict = nullptr;  // how these weights are predicted, where they are

  int microbatches_of_step() const { return microbatches / steps; }
  int delay(int stage) const { return delays.empty() ? 0 : delays[size_t(stage)]; }
};
std::string_view words_of(Flow);  // "activation", "gradient"; "gradient of shared weights"
// Says whether any stage trains with older weights than the newest.
bool has_delays(const Schedule&);
// Returns the bytes of a message.
int64_t message_bytes(const Profile&, const Message&);
bool learns(const Schedule&);      // whether it has backwards: else it evaluates
bool has_halves(const Schedule&);  // whether any backward is in two actions, I and W
bool has_votes(const Schedule&);   // whether all ranks agree before they update
// Returns the schedule of only so many of its steps, which keep their order.
Schedule first_steps(const Schedule&, int steps);
// Returns the schedule with a vote before the first update of every rank.
Schedule with_votes(Schedule);

// A FoldTerm says where a gradient contribution of one tensor comes from. Terms are in the order of the fold:
// consumers descending. Each term is one local consumer or one message's run. There are none for a tensor
// that needs no gradient or has no consumer.
struct FoldTerm {
  int stage = 0;    // whose backward computes it
  Message message;  // consumer = the run's lowest node; local terms have one consumer each
};
std::vector<FoldTerm> gradient_fold(const Profile& profile, const std::vector<int>& stage_of, int tensor);

std::string print(const Action&);
std::string print(const Schedule&);  // one line a rank, after a header line
// Returns nothing when the word is no action.
std::optional<Action> parse_action(std::string_view word);
// Throws Error with origin, line and word.
Schedule parse_schedule(const std::string& text, const std::string& origin);

// Throws Error naming rank and action, for: a deadlock; a message sent and not received, or the reverse; a
// forward or backward that is missing, there twice, or before what it needs; a gradient unused or used twice;
// micro-batches out of order (weight gradients accumulate in it, and buffers are used in turn); a micro-batch
// on another replica than its turn says; a missing update; an all-reduce that a replica misses or that comes
// before a gradient of it. Where a rank has two stages of which one uses the other's outputs, it is an error
// as well when a forward or backward comes before what it uses. So are delays that are not one a stage, and
// several steps where ranks have several stages, wait for each other, or update at another place than right
// after a step's backwards.
void validate(const Schedule&, const Profile& profile, const Plan&);

// Returns the most micro-batches that each rank has in flight at once, from the beginning of a forward to the
// end of the weight half or the whole backward (of the forward, where nothing is learned). On a rank with v
// stages a micro-batch of one of them counts 1 / v: the unit is the activations of a whole rank.
std::vector<double> peak_in_flight(const Schedule&);

}  // namespace antichain
