#pragma once

#include "data/dataset.h"

namespace limber {

inline constexpr int kShapes = 10;
ClassNames shape_names();
// Distance from (x, y) to the outline of a shape that fills about -1..1, negative inside; y points down.
float shape_distance(int shape, float x, float y);

}  // namespace limber
