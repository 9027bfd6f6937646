// Keeps the plans that cuDNN compiled as texts in the user's cache folder ($XDG_CACHE_HOME/antichain, else
// ~/.cache/antichain), so that the next process need not compile them again: a second each. A text is cuDNN's
// own (CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION).
#pragma once

#include <string>

namespace antichain::cuda {

// `key` says all that a plan depends on: the version of cuDNN, the device, the operation and the engine.
// Returns "" where there is none.
std::string kept_plan_text(const std::string& key);
// A plan that can't be kept is compiled again next time, so an error is ignored.
void keep_plan_text(const std::string& key, const std::string& text);

}  // namespace antichain::cuda
