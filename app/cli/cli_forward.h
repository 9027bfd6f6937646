// The parser's classes by name, for the headers of the options: CLI11 itself takes seconds to compile, so
// only the files that declare options include it.
#pragma once

namespace CLI {
class App;
class Option;
class FormatterBase;
}  // namespace CLI
