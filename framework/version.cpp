#include "framework/version.h"

namespace antichain {

const char* version() { return ANTICHAIN_VERSION; }

}  // namespace antichain
