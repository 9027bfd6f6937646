// The JSON library's templates as the project uses them, compiled here and nowhere else: see
// cmake/once/nlohmann/json.hpp.
#define ANTICHAIN_JSON_TEMPLATE template
#include <nlohmann/json.hpp>
