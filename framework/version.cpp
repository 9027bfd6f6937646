#include "framework/version.h"

namespace antichain {

const char* version() { return ANTICHAIN_VERSION; }

const char* revision() { return ANTICHAIN_REVISION; }

}  // namespace antichain
