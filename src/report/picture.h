// Plots as an SVG file of its own, light or dark as the reader's system is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/plot.h"

namespace limber {

// Side by side, each under its title. Plots without a point are left out.
std::string svg_picture(std::string_view title, const std::vector<LinePlot>& plots);

}  // namespace limber
