// What a program outside of Limber's tree needs: one header and one library. Runs a model once, on zeros.
//
//   outside [MODEL]
#include <limber/limber.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace {

int fail(const limber::Error& error) {
  std::fprintf(stderr, "outside: %s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto model = limber::Model::load(argc > 1 ? argv[1] : "builtin:resnet8");
  if (!model) return fail(model.error());
  auto session = model->compile();
  if (!session) return fail(session.error());
  for (const limber::TensorView& input : session->inputs()) std::ranges::fill(input.as<float>(), 0.F);
  if (limber::Error error = session->run(); !error.ok()) return fail(error);

  const limber::TensorView output = session->outputs()[0];
  const auto scores = output.as<float>();
  if (scores.empty())
    return fail({limber::ErrorCode::kUnsupported, "'" + output.name + "' does not hold f32"});
  const auto best = std::ranges::max_element(scores);
  std::printf("limber %s: '%s' has %zu values, the largest is number %zu\n",
              std::string(limber::version()).c_str(), output.name.c_str(), scores.size(),
              static_cast<size_t>(best - scores.begin()));
  return 0;
}
