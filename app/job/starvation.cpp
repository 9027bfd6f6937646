#include "app/job/starvation.h"

#include <atomic>

#include "framework/say.h"
#include "pipeline/host/launch.h"

namespace antichain {
void warn_of_starving(const std::string& how, const Job& job, const Context& context) {
  static std::atomic_flag said;
  if (job.rank() != 0 || how.empty() || !crowding_warning(job.local_size(), context.threads()).empty() ||
      said.test_and_set())
    return;
  warn(how + ": times are doubtful, measure again when nothing else runs there");
}

}  // namespace antichain
