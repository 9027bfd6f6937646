// Keeps the plans that cuDNN compiled as texts in the user's cache folder ($XDG_CACHE_HOME/antichain, else
// ~/.cache/antichain). So the next process need not compile them again, which takes a second for each plan.
// cuDNN itself writes and reads the texts (CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION).
#pragma once

#include <string>

namespace antichain::cuda {

// `key` says all that a plan depends on: the version of cuDNN, the device, the operation and the engine.
// Returns "" where there is none.
std::string kept_plan_text(const std::string& key);
// A plan that can't be kept is compiled again next time, so an error is ignored.
void keep_plan_text(const std::string& key, const std::string& text);

}  // namespace antichain::cuda
