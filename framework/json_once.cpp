// Compiles the JSON library's templates that the project uses, here and nowhere else: see
// cmake/once/nlohmann/json.hpp.
#define ANTICHAIN_JSON_TEMPLATE template
#include <nlohmann/json.hpp>
