// These objects measure and scale the gradients of a rank, to clip them by the norm over all parameters of
// all ranks (Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", ICML
// 2013; torch.nn.utils.clip_grad_norm_).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "pipeline/device/device_step.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/stage/rank_model.h"

namespace antichain {

// These are the sums of the squares of the parameters' gradients, by full name.
using SquaresByName = std::map<std::string, double>;

// A GradientClip hears the squares of a rank right before a training step's update, and returns the factor
// for all gradients, which is the same on every rank. Every rank calls it once a step, so it asks the others.
using GradientClip = std::function<float(const SquaresByName& mine)>;

class GradientNorm {
 public:
  virtual ~GradientNorm() = default;
  // Returns the squares of the parameters that are trained. The order of a sum depends on nothing but the
  // parameter's size and layout.
  virtual SquaresByName squares() = 0;
  virtual void scale(float factor) = 0;
  // Clips the gradients of a rank that trains alone. On a device the host waits for nothing.
  virtual void clip(double most) = 0;
};

class HostNorm final : public GradientNorm {
 public:
  explicit HostNorm(RankModel& model) : model_(model) {}
  SquaresByName squares() override;
  void scale(float factor) override;
  void clip(double most) override;

 private:
  RankModel& model_;
};

// Of each parameter 8 bytes come to the host, in one wait.
class DeviceNorm final : public GradientNorm {
 public:
  DeviceNorm(const RankModel&, DeviceStep&, CopyStream&);
  SquaresByName squares() override;
  void scale(float factor) override { device_.scale(gradients_, factor); }
  void clip(double most) override;

 private:
  DeviceStep& device_;
  SquaresByName named_;  // the names, in the order of the gradients
  Gradients gradients_;
  Tensor host_;  // page-locked: the sums
};

// Returns min(1, most / (norm + 1e-6)), where the norm is the root of all squares, added up in the order of
// the names. Returns 1 where the norm is not finite: then a gradient is not, which the judge hears of.
float clip_factor(const SquaresByName& of_all_ranks, double most);

}  // namespace antichain
