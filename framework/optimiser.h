// An optimiser is an immutable description of how parameters follow their gradients; an engine's update
// carries it out. Neither owns a tensor.
//
//   Optimiser   its name, its settings, and the slots that it keeps beside a parameter from step to step
//   Trained     one parameter with the tensors that its update needs
//   Update      the engine's code for one pass over some parameters; the backend's table has it by name
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op.h"

namespace antichain {

struct Node;

class Optimiser {
 public:
  virtual ~Optimiser() = default;
  virtual std::string_view name() const = 0;  // the key of the engines' tables: "sgd"
  virtual std::string str() const = 0;        // its settings, for a reader: "momentum 0.9, weight decay 0"
  // Returns the names of the slots of a parameter that is trained, "" never among them. A slot is a tensor of
  // the parameter's shape, type and layout that begins as zeros; a checkpoint has it as "SLOT/parameter's
  // name".
  virtual std::vector<std::string> slots(const ParamSpec&) const = 0;
};
// Returns the slots that a stage holds of a parameter: none of one that is frozen.
std::vector<std::string> slots_of(const Optimiser&, const ParamSpec&);

// Returns the optimiser that trains where no other is named (framework/sgd.h).
const std::shared_ptr<const Optimiser>& default_optimiser();

// Returns the bytes of all slots of a lowered node's parameters.
int64_t slot_bytes(const Optimiser&, const Node&);

// A Rate is a step's learning rate, with the step's number: as values, or as their address in the device's
// memory, which is read when the update runs.
struct Rate {
  Rate(float value, uint64_t step = 0) : value(value), step(step) {}
  explicit Rate(const StepNumbers* live) : live(live) {}
  // Returns the rate of a group of parameters, which is a multiple of the step's.
  Rate times(float more) const {
    Rate rate = *this;
    rate.value *= more;
    rate.factor *= more;
    return rate;
  }

  float value = 0;
  uint64_t step = 0;
  const StepNumbers* live = nullptr;
  float factor = 1;  // of the live rate; `value` is the product already
};

// All tensors but `rounded` are float32 and of one shape and layout.
struct Trained {
  Tensor w, dw;
  std::vector<Tensor> slots;  // in the optimiser's order
  Tensor rounded;  // a copy of w in a type of fewer bits, written by the update; empty unless the engine's
                   // Lowering says prepared_rounded
  std::string name = {};  // the parameter's full name
};

class Update {
 public:
  virtual ~Update() = default;
  virtual void run(Context&, const Rate&) const = 0;
};

// A MakeUpdate makes an engine's update of these parameters, which runs once a step from then on.
using MakeUpdate = std::function<std::unique_ptr<Update>(std::shared_ptr<const Optimiser>, const Context&,
                                                         std::vector<Trained>)>;

// Makes updates that take one parameter after the other, for engines where each costs no launch.
using UpdateOne = void (*)(Context&, const Optimiser&, const Rate&, const Trained&);
MakeUpdate one_by_one(UpdateOne);

}  // namespace antichain
