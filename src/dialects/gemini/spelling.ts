// Google's parser takes each name of its API in two spellings, `toolConfig` and `tool_config`, and Google's Python client
// sends both. Here they are written the first way before anything else reads a body; the rest of it stays as it is.

import { JsonEdits, JsonFault, type JsonNode, readJson } from '../../wire/json.ts'

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
  const root = readJson(body)
  // A body that is not JSON stays as it is, and is refused by its reader.
  if (root instanceof JsonFault) return body
  const edits = new JsonEdits(body)
  rename(root, 'request', edits)
  return edits.isEmpty ? body : edits.apply()
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

function rename(node: JsonNode, place: Place, edits: JsonEdits): void {
  for (const element of node.elements() ?? []) rename(element, place, edits)
  for (const member of node.members() ?? []) {
    const name = place === 'map' ? member.name : (camelOf.get(member.name) ?? member.name)
    if (name !== member.name) edits.rename(member, name)
    const inner = placeIn(place, name)
    if (inner) rename(member, inner, edits)
  }
}
