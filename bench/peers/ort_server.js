// ONNX Runtime behind a small HTTP server of the Open Inference Protocol 2, as somebody would write it who has no
// inference server: the peer of bench/serve.py.
// usage: NODE_PATH=build/peers/node_modules node ort_server.js MODEL.onnx PORT THREADS [NAME]
// Prints "ready" once it listens on 127.0.0.1:PORT.
'use strict';

const http = require('http');
const {ort, sessionOptions, version} = require('./ort.js');

const [model, port, threads] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const name = process.argv[5] || 'model';
if (!model || !Number.isInteger(port) || !Number.isInteger(threads) || threads < 1) {
  process.stderr.write('usage: ort_server.js MODEL.onnx PORT THREADS [NAME]\n');
  process.exit(2);
}

const LIMIT = 64 << 20;  // bytes of a request
// The protocol's name -> ONNX Runtime's and the class that holds the elements.
const TYPES = {
  FP32: ['float32', Float32Array],
  FP64: ['float64', Float64Array],
  INT8: ['int8', Int8Array],
  UINT8: ['uint8', Uint8Array],
  INT16: ['int16', Int16Array],
  INT32: ['int32', Int32Array],
  INT64: ['int64', BigInt64Array],
  UINT64: ['uint64', BigUint64Array],
};
const NAMES = Object.fromEntries(Object.entries(TYPES).map(([protocol, [own]]) => [own, protocol]));

// What the client did wrong: an answer with this status.
class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function readBody(request) {
  return new Promise((resolve, reject) => {
    const parts = [];
    let size = 0;
    request.on('data', (part) => {
      size += part.length;
      if (size > LIMIT) reject(new Refused(413, `the request is larger than ${LIMIT} bytes`));
      else parts.push(part);
    });
    request.on('end', () => resolve(parts.length === 1 ? parts[0] : Buffer.concat(parts)));
    request.on('error', reject);
  });
}

// The JSON of a request and the bytes behind it.
function splitBody(request, body) {
  const field = request.headers['inference-header-content-length'];
  const length = field === undefined ? body.length : Number(field);
  if (!Number.isInteger(length) || length < 0 || length > body.length) {
    throw new Refused(400, `Inference-Header-Content-Length is ${field}; the body has ${body.length} bytes`);
  }
  let json;
  try {
    json = JSON.parse(body.toString('utf8', 0, length));
  } catch (error) {
    throw new Refused(400, `the JSON cannot be read: ${error.message}`);
  }
  if (json === null || !Array.isArray(json.inputs)) throw new Refused(400, 'the request has no inputs');
  return [json, body.subarray(length)];
}

function elementsOf(shape) {
  const whole = Array.isArray(shape) && shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0);
  if (!whole) throw new Refused(400, `${JSON.stringify(shape)} is no shape`);
  return shape.reduce((a, b) => a * b, 1);
}

// The tensors of a request, by name.
function feedsOf(json, bytes, inputs) {
  const feeds = {};
  let offset = 0;
  for (const input of json.inputs) {
    if (!inputs.includes(input.name)) throw new Refused(400, `there is no input '${input.name}'`);
    const type = TYPES[input.datatype];
    if (!type) throw new Refused(400, `input '${input.name}': unknown datatype '${input.datatype}'`);
    const [own, ArrayType] = type;
    const count = elementsOf(input.shape);
    let data;
    if (Array.isArray(input.data)) {
      data = ArrayType.from(input.data.flat(Infinity));
      if (data.length !== count) throw new Refused(400, `input '${input.name}' has ${data.length} values`);
    } else {
      const size = input.parameters && input.parameters.binary_data_size;
      if (size !== count * ArrayType.BYTES_PER_ELEMENT || offset + size > bytes.length) {
        throw new Refused(400, `input '${input.name}' has ${size} bytes; its shape needs others`);
      }
      const at = bytes.byteOffset + offset;
      data = at % ArrayType.BYTES_PER_ELEMENT === 0 ?
          new ArrayType(bytes.buffer, at, count) :
          new ArrayType(bytes.buffer.slice(at, at + size));
      offset += size;
    }
    feeds[input.name] = new ort.Tensor(own, data, input.shape);
  }
  for (const input of inputs) {
    if (!(input in feeds)) throw new Refused(400, `input '${input}' is missing`);
  }
  return feeds;
}

// The answer's JSON and the parts behind it.
function answerOf(json, results, outputs) {
  const wanted = Array.isArray(json.outputs) && json.outputs.length ? json.outputs : outputs.map((o) => ({name: o}));
  const parts = [];
  const list = wanted.map((want) => {
    const tensor = results[want.name];
    if (!tensor) throw new Refused(400, `there is no output '${want.name}'`);
    const entry = {name: want.name, datatype: NAMES[tensor.type], shape: Array.from(tensor.dims)};
    if (want.parameters && want.parameters.binary_data) {
      const part = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
      entry.parameters = {binary_data_size: part.length};
      parts.push(part);
    } else {
      entry.data = Array.from(tensor.data, Number);
    }
    return entry;
  });
  const head = {model_name: name, model_version: '1', outputs: list};
  if (json.id !== undefined) head.id = json.id;
  return [Buffer.from(JSON.stringify(head)), parts];
}

function send(response, status, value) {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, {'Content-Type': 'application/json', 'Content-Length': body.length});
  response.end(body);
}

function metadataOf(session) {
  const describe = (entry) => ({
    name: entry.name,
    datatype: NAMES[entry.type],
    shape: entry.shape.map((dim) => (typeof dim === 'number' && dim > 0 ? dim : -1)),
  });
  return {
    name,
    versions: ['1'],
    platform: 'onnxruntime_onnx',
    inputs: session.inputMetadata.map(describe),
    outputs: session.outputMetadata.map(describe),
  };
}

async function main() {
  const session = await ort.InferenceSession.create(model, sessionOptions(threads));
  const metadata = metadataOf(session);
  const path = `/v2/models/${encodeURIComponent(name)}`;

  async function infer(request, response) {
    const [json, bytes] = splitBody(request, await readBody(request));
    const feeds = feedsOf(json, bytes, session.inputNames);
    let results;
    try {
      results = await session.run(feeds);
    } catch (error) {
      throw new Refused(400, String(error.message || error));
    }
    const [head, parts] = answerOf(json, results, session.outputNames);
    const fields = {'Content-Length': parts.reduce((sum, part) => sum + part.length, head.length)};
    fields['Content-Type'] = parts.length ? 'application/octet-stream' : 'application/json';
    if (parts.length) fields['Inference-Header-Content-Length'] = head.length;
    response.writeHead(200, fields);
    response.end(parts.length ? Buffer.concat([head, ...parts]) : head);
  }

  async function handle(request, response) {
    const key = `${request.method} ${request.url}`;
    if (key === `POST ${path}/infer`) return infer(request, response);
    if (request.url === `${path}/infer`) throw new Refused(405, 'infer wants POST');
    if (key === `GET ${path}`) return send(response, 200, metadata);
    if (key === 'GET /v2/health/ready' || key === 'GET /v2/health/live') return send(response, 200, {});
    if (key === 'GET /v2') return send(response, 200, {name: 'onnxruntime-node', version: version(), extensions: []});
    if (key === 'POST /v2/repository/index') return send(response, 200, [{name, version: '1', state: 'READY'}]);
    throw new Refused(404, `there is nothing at ${request.url}`);
  }

  const server = http.createServer((request, response) => {
    handle(request, response).catch((error) => {
      if (!response.headersSent) send(response, error.status || 500, {error: String(error.message || error)});
    });
  });
  server.keepAliveTimeout = 600000;  // as long as the other side keeps its connections
  server.listen(port, '127.0.0.1', () => process.stdout.write('ready\n'));
}

main().catch((error) => {
  process.stderr.write(`${error.stack || error}\n`);
  process.exit(1);
});
