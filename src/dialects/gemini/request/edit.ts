// Which generateContent bodies may be passed on as they are, and what is edited in those: the output cap, and ids for
// hosts that refuse them. Everything else is forwarded byte for byte.
//
// A body can name files and caches of the operator's account and tools that Google bills apart from tokens. So a body
// passes only if all names in it are known here; others are translated.

import { hasBytes } from '../../../wire/bytes.ts'
import type { JsonNode } from '../../../wire/json.ts'
import { BodyEdits, type EditedRequest, type RequestEdits } from '../../byte-lane/edits.ts'
import { isRecord, recordOf, textOf } from '../../canonical/json.ts'
import type { SentRequest } from '../../canonical/translation.ts'
import type { EnvelopeFields } from '../../request/fields.ts'
import { ownSignatureStart } from '../reasoning.ts'
import { hostTiers } from '../tiers.ts'
import { takesIds } from './render.ts'

const passedMembers: ReadonlySet<string> = new Set([
  ...['contents', 'systemInstruction', 'tools', 'toolConfig', 'safetySettings', 'generationConfig', 'serviceTier'],
])
const passedConfig: ReadonlySet<string> = new Set([
  ...['temperature', 'topP', 'topK', 'maxOutputTokens', 'stopSequences', 'seed', 'presencePenalty', 'frequencyPenalty'],
  ...['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema', 'thinkingConfig'],
  ...['candidateCount', 'responseLogprobs', 'logprobs', 'mediaResolution', 'responseModalities'],
])
const passedParts: ReadonlySet<string> = new Set([
  ...['text', 'inlineData', 'functionCall', 'functionResponse', 'thought', 'thoughtSignature'],
  ...['videoMetadata', 'mediaResolution'],
])

export function isPassable(fields: EnvelopeFields): boolean {
  const { members } = fields
  if (!members.members()?.every(({ name }) => passedMembers.has(name))) return false
  const config = recordOf(fields.value('generationConfig'))
  if (!Object.keys(config).every((name) => passedConfig.has(name)) || !isTextOnly(config.responseModalities))
    return false
  if (!hasOnlyFunctions(members.get('tools'))) return false
  if (!suspicious.some((word) => hasBytes(members.bytes, word))) return true
  const contents = fields.value('contents')
  const system = fields.value('systemInstruction')
  return Array.isArray(contents) && contents.every(isKnown) && (system === undefined || isKnown(system))
}

function isTextOnly(modalities: unknown): boolean {
  return modalities === undefined || (Array.isArray(modalities) && modalities.every((each) => each === 'TEXT'))
}

/** An entry with repeated names cannot be judged, and one without a list around it is a list of one to Google. */
function hasOnlyFunctions(tools: JsonNode | undefined): boolean {
  if (!tools || tools.kind === 'null') return true
  const isFunctions = (tool: JsonNode) => tool.members()?.every(({ name }) => name === 'functionDeclarations')
  return tools.elements()?.every(isFunctions) ?? false
}

/** The contents of a body without these are not parsed. Any letter of a name may be escaped. */
const suspicious = ['fileData', 'file_data', 'inline_data', `"${ownSignatureStart}`, '\\u00'].map((word) =>
  Buffer.from(word),
)

/** Whether a content has only parts that may be passed on. `{parts: {…}}` is a list of one to Google. */
function isKnown(content: unknown): boolean {
  const { parts = [] } = recordOf(content)
  return Array.isArray(parts) && parts.every(isKnownPart)
}

function isKnownPart(part: unknown): boolean {
  if (!isRecord(part) || !Object.keys(part).every((name) => passedParts.has(name))) return false
  // A signature of another model, which only this gateway can read.
  if (textOf(part.thoughtSignature).startsWith(ownSignatureStart)) return false
  return isKnown(part.functionResponse)
}

export function editRequest(sent: SentRequest, edits: RequestEdits): EditedRequest {
  const body = new BodyEdits(sent, edits)
  const config = body.root.get('generationConfig')
  const cap = body.cap(config?.get('maxOutputTokens') && '/generationConfig/maxOutputTokens')
  if (cap !== undefined && cap !== sent.envelope.outputCap) {
    if (config?.members()) body.put(config, 'maxOutputTokens', String(cap))
    else body.put(body.root, 'generationConfig', `{"maxOutputTokens":${cap}}`)
  }
  if (!takesIds(edits.rules)) removeIds(body)
  body.editTier('serviceTier', hostTiers)
  return body.finish()
}

/** Such hosts match calls and results by their order. */
function removeIds(body: BodyEdits): void {
  const contents = body.root.get('contents')?.elements() ?? []
  for (const part of contents.flatMap((content) => content.get('parts')?.elements() ?? [])) {
    const id = (part.get('functionCall') ?? part.get('functionResponse'))?.get('id')
    if (id) body.remove(id)
  }
}
