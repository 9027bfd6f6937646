// A rank may begin a step as soon as its own update of the step before is done: then steps overlap. Or it
// waits until all ranks have ended that step: then steps are apart.
#pragma once

namespace antichain {

enum class Steps { apart, overlapped };

}  // namespace antichain
