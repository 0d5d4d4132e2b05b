// Runs ONNX models with ONNX Runtime, as the reference of parity.py.
// usage: NODE_PATH=build/peers/node_modules node ort_run.js THREADS
// Each line of stdin is a job {"model": file, "inputs": {name: npy file}, "output": folder}. The answer is
// one line, [{"name", "file", "dtype", "shape"}, ...] in graph order with the arrays written into the folder,
// or "error ...".
'use strict';

const path = require('path');
const {readNpy, writeNpy, sessionOptions, serve, ort} = require('../../bench/peers/ort.js');

const threads = Number(process.argv[2]);
if (!Number.isInteger(threads) || threads < 1) {
  process.stderr.write('usage: ort_run.js THREADS\n');
  process.exit(2);
}

// Pad_Fusion (seen in 1.30) moves a zero Pad into the following MaxPool, whose own padding counts as minus
// infinity: wrong where a window is negative, as in YOLOv3-tiny. The reference runs without that one rewrite.
const options = {
  ...sessionOptions(threads),
  extra: {optimization: {disable_specified_optimizers: 'Pad_Fusion'}},
};

// The session of the latest model: jobs come grouped by model.
const latest = {model: '', session: null};

async function sessionOf(model) {
  if (latest.model !== model) {
    if (latest.session) await latest.session.release();
    Object.assign(latest, {model: '', session: null});
    latest.session = await ort.InferenceSession.create(model, options);
    latest.model = model;
  }
  return latest.session;
}

async function run(line) {
  const job = JSON.parse(line);
  const session = await sessionOf(job.model);
  const feeds = {};
  for (const [name, file] of Object.entries(job.inputs)) feeds[name] = readNpy(file);
  const results = await session.run(feeds);
  const outputs = session.outputNames.map((name, index) => {
    const tensor = results[name];
    const file = `${index}.npy`;
    writeNpy(path.join(job.output, file), tensor);
    return {name, file, dtype: tensor.type, shape: tensor.dims};
  });
  return JSON.stringify(outputs);
}

serve(run);
