// What this program is made of.
#pragma once

#include <string>

namespace limber {

std::string version_number();
std::string version_text();  // with build, operator sets, kernels and CPU

}  // namespace limber
