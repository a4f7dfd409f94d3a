// Run by Node, not by Bun: reads requests with llhttp, at Node's strict defaults. Each line of the input is a list of
// inputs, each a list of the pieces it arrives in; each line of the output is the list of what was read.

import { createInterface } from 'node:readline'

const { HTTPParser, allMethods, methods } = process.binding('http_parser')
const methodNames = allMethods ?? methods
const headMax = 1024 * 1024

function read(pieces) {
  const parser = new HTTPParser()
  parser.initialize(HTTPParser.REQUEST, {}, headMax, HTTPParser.kLenientNone)
  const requests = []
  let current
  let lines = []
  let target = ''
  // Called for heads that come in several parts, and for trailers, which are skipped.
  parser[HTTPParser.kOnHeaders] = (more, url) => {
    if (current) return
    lines.push(...more)
    target += url
  }
  parser[HTTPParser.kOnHeadersComplete] = (_major, minor, more, method, url, _status, _text, _upgrade, isKept) => {
    const fields = [...lines, ...(more ?? [])]
    current = { method: methodNames[method], target: url ?? target, minor, fields, body: '', isKept }
    lines = []
    target = ''
    return 0
  }
  parser[HTTPParser.kOnBody] = (bytes) => {
    current.body += bytes.latin1Slice()
  }
  parser[HTTPParser.kOnMessageComplete] = () => {
    requests.push(current)
    current = undefined
  }
  let fault
  for (const piece of pieces) {
    const result = parser.execute(Buffer.from(piece, 'latin1'))
    if (!(result instanceof Error)) continue
    fault = result.code
    break
  }
  parser.close()
  return { requests, fault }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(JSON.parse(line).map(read))}\n`)
}
