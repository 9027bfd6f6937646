#include "pipeline/train/best_watch.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>

namespace antichain {

bool BestWatch::is_better(double loss, double accuracy) const {
  if (!std::isfinite(loss)) return false;
  if (best_.step == 0 || accuracy > best_.accuracy) return true;
  return accuracy == best_.accuracy && loss < best_.loss;
}

BestWatch::Judgement BestWatch::judge(Job& job, int64_t step, double loss, double accuracy) {
  std::istringstream in(job.broadcast(fmt::format("{} {}", loss, accuracy)));
  std::string loss_text, accuracy_text;  // a stream reads no "nan" as a number
  in >> loss_text >> accuracy_text;
  loss = std::strtod(loss_text.c_str(), nullptr), accuracy = std::strtod(accuracy_text.c_str(), nullptr);
  const Judgement judgement{.finite = std::isfinite(loss), .better = is_better(loss, accuracy)};
  if (judgement.better)
    best_ = {.step = step, .loss = loss, .accuracy = accuracy};
  else
    ++best_.since;
  return judgement;
}

}  // namespace antichain
