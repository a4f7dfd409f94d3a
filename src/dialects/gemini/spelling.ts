// Google's parser takes each name of its API in two spellings, `toolConfig` and `tool_config`, and Google's Python client
// sends both. Here they are written the first way before anything else reads a body; the rest of it stays as it is.

import { type ByteEdit, type JsonSpan, readJsonElements, spliceBytes } from '../../wire/json.ts'
import { byteEdit, objectAt } from '../byte-lane/edits.ts'

/** https://ai.google.dev/api/generate-content and https://ai.google.dev/api/embeddings, 2026-11 */
const names = [
  ...['systemInstruction', 'toolConfig', 'safetySettings', 'generationConfig', 'cachedContent', 'serviceTier'],
  ...['generateContentRequest', 'outputDimensionality', 'taskType'],
  ...['topP', 'topK', 'maxOutputTokens', 'stopSequences', 'presencePenalty', 'frequencyPenalty', 'candidateCount'],
  ...['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema', 'responseModalities'],
  ...['responseLogprobs', 'mediaResolution', 'thinkingConfig', 'thinkingBudget', 'thinkingLevel', 'includeThoughts'],
  ...['functionDeclarations', 'parametersJsonSchema', 'functionCallingConfig', 'allowedFunctionNames'],
  ...['googleSearch', 'googleSearchRetrieval', 'urlContext', 'codeExecution', 'googleMaps', 'fileSearch'],
  ...['computerUse', 'inlineData', 'fileData', 'functionCall', 'functionResponse', 'thoughtSignature'],
  ...['videoMetadata', 'mimeType', 'fileUri', 'displayName'],
  ...['anyOf', 'propertyOrdering', 'minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'],
]
const camelOf: ReadonlyMap<string, string> = new Map(
  names.map((name) => [name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), name]),
)
const otherSpelling = new RegExp(`"(?:${[...camelOf.keys()].join('|')})"`)

/** The same array if no name is spelled the other way. */
export function inOneSpelling(body: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (!otherSpelling.test(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1'))) return body
  // A body that is not JSON stays as it is, and is refused by its reader.
  const edits = objectAt(body, { start: 0, end: body.length }) ? renamed(body, rootSpan(body), 'request') : []
  return edits.length === 0 ? body : spliceBytes(body, edits)
}

function rootSpan(body: Uint8Array): JsonSpan {
  return { start: body.indexOf(0x7b), end: body.length }
}

/** `map`: its names are the caller's, and its values are schemas. */
type Place = 'request' | 'result' | 'schema' | 'map'

/** Where a member leads; undefined = into JSON of the caller, whose names are not Google's. */
function placeIn(place: Place, name: string): Place | undefined {
  switch (place) {
    case 'map':
      return 'schema'
    case 'schema':
      if (name === 'properties') return 'map'
      return ['default', 'example', 'enum'].includes(name) ? undefined : 'schema'
    case 'result':
      return name === 'response' ? undefined : 'request'
    case 'request':
      if (['args', 'parametersJsonSchema', 'responseJsonSchema', '_responseJsonSchema'].includes(name)) return undefined
      if (['parameters', 'response', 'responseSchema'].includes(name)) return 'schema'
      return name === 'functionResponse' ? 'result' : 'request'
  }
}

function renamed(body: Uint8Array, { start, end }: JsonSpan, place: Place): ByteEdit[] {
  if (body[start] === 0x5b) return readJsonElements(body, start, end).flatMap((span) => renamed(body, span, place))
  if (body[start] !== 0x7b) return []
  const members = objectAt(body, { start, end })?.list ?? []
  return members.flatMap(({ name: written, start: at, valueStart, valueEnd }) => {
    const name = place === 'map' ? written : (camelOf.get(written) ?? written)
    const inner = placeIn(place, name)
    return [
      ...(name === written ? [] : [byteEdit(at, valueStart, `${JSON.stringify(name)}:`)]),
      ...(inner ? renamed(body, { start: valueStart, end: valueEnd }, inner) : []),
    ]
  })
}
