// Limber: load an ONNX model, compile it for this machine, run it, train it, let it change its shape.
//
//   auto model = limber::Model::load("model.onnx");
//   auto session = model->compile({.threads = 2});
//   std::ranges::copy(pixels, session->inputs()[0].as<float>().begin());
//   session->run();
//   session->outputs()[0].as<float>();
//
// Every call that can fail returns an Error or an Expected (error.h); nothing throws.
#pragma once

#include "limber/control.h"
#include "limber/elastic.h"
#include "limber/elastify.h"
#include "limber/error.h"
#include "limber/evaluate.h"
#include "limber/model.h"
#include "limber/session.h"
#include "limber/tensor.h"
#include "limber/train.h"
