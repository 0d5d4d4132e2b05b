#include "data/shapes.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace limber {
namespace {

constexpr float kPi = 3.14159265F;

struct Point {
  float x, y;
};
using Polygon = std::vector<Point>;

Polygon regular(int corners, float outer, float inner) {
  Polygon polygon;
  const int points = inner > 0 ? 2 * corners : corners;
  for (int i = 0; i < points; ++i) {
    const float angle = 2 * kPi * static_cast<float>(i) / static_cast<float>(points);
    const float radius = inner > 0 && i % 2 == 1 ? inner : outer;
    polygon.push_back({radius * std::sin(angle), -radius * std::cos(angle)});
  }
  return polygon;
}

Polygon heart() {
  Polygon polygon;
  for (int i = 0; i < 18; ++i) {
    const float t = 2 * kPi * static_cast<float>(i) / 18, s = std::sin(t);
    const float y = 13 * std::cos(t) - 5 * std::cos(2 * t) - 2 * std::cos(3 * t) - std::cos(4 * t);
    polygon.push_back({s * s * s, -(y + 2) / 16});
  }
  return polygon;
}

const Polygon& polygon_of(int shape) {
  static const Polygon* polygons = new Polygon[7]{
      {{-0.75F, -0.75F}, {0.75F, -0.75F}, {0.75F, 0.75F}, {-0.75F, 0.75F}},
      regular(3, 1, 0),
      regular(5, 1.05F, 0.42F),
      {{-0.3F, -0.95F},
       {0.3F, -0.95F},
       {0.3F, -0.3F},
       {0.95F, -0.3F},
       {0.95F, 0.3F},
       {0.3F, 0.3F},
       {0.3F, 0.95F},
       {-0.3F, 0.95F},
       {-0.3F, 0.3F},
       {-0.95F, 0.3F},
       {-0.95F, -0.3F},
       {-0.3F, -0.3F}},
      {{0, -1}, {0.8F, -0.1F}, {0.3F, -0.1F}, {0.3F, 0.95F}, {-0.3F, 0.95F}, {-0.3F, -0.1F}, {-0.8F, -0.1F}},
      heart(),
      {{0.35F, -1}, {-0.6F, 0.2F}, {-0.05F, 0.2F}, {-0.35F, 1}, {0.6F, -0.25F}, {0.05F, -0.25F}}};
  return polygons[shape];
}

float distance(const Polygon& polygon, float x, float y) {
  float nearest = 1e9F;
  bool inside = false;
  for (size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++) {
    const Point a = polygon[j], b = polygon[i];
    const float ex = b.x - a.x, ey = b.y - a.y, px = x - a.x, py = y - a.y;
    const float along = std::clamp((px * ex + py * ey) / (ex * ex + ey * ey), 0.F, 1.F);
    const float dx = px - ex * along, dy = py - ey * along;
    nearest = std::min(nearest, dx * dx + dy * dy);
    if ((a.y > y) != (b.y > y) && x < a.x + ex * (y - a.y) / ey) inside = !inside;
  }
  return inside ? -std::sqrt(nearest) : std::sqrt(nearest);
}

}  // namespace

ClassNames shape_names() {
  return {"circle", "ring", "crescent", "square", "triangle", "star", "cross", "arrow", "heart", "bolt"};
}

float shape_distance(int shape, float x, float y) {
  const float radius = std::hypot(x, y);
  switch (shape) {
    case 0:
      return radius - 0.85F;
    case 1:
      return std::abs(radius - 0.68F) - 0.22F;
    case 2:
      return std::max(radius - 0.95F, 0.72F - std::hypot(x - 0.42F, y));
    default:
      return distance(polygon_of(shape - 3), x, y);
  }
}

}  // namespace limber
