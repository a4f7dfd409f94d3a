// The parts that both OpenAI dialects parse alike: serving, the output format, grammars, files and audio.

import type { Conversation, DocumentBlock, MediaBlock, OutputFormat, RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { askedTier, openaiTiers } from '../canonical/tiers.ts'
import { readCacheOptions } from './cache-marks.ts'
import { type ParseContext, type RequestFields, shownWord } from './fields.ts'
import { isWebUrl, mediaByContent, readDataUrl, readMediaUrl } from './media.ts'

/** Who asks, and how to cache and serve the request. */
/** The default of `prompt_cache_retention`, in both spellings. */
export function isUsualRetention(value: unknown): boolean {
  return value === 'in_memory' || value === 'in-memory'
}

export function parseServing(body: RequestFields, context: ParseContext) {
  return {
    endUserId: body.optionalText('safety_identifier') || body.optionalText('user') || undefined,
    serviceTier: askedTier(openaiTiers, body.optionalText('service_tier')),
    promptCacheKey: body.optionalText('prompt_cache_key') || undefined,
    promptCacheOptions: readCacheOptions(body, context),
  } satisfies Partial<Conversation>
}

export function endUserPointer(body: RequestFields): string {
  return body.optionalText('safety_identifier') ? '/safety_identifier' : '/user'
}

const schemaMembers = ['name', 'description', 'schema', 'strict']
const flatMembers = [...schemaMembers, 'type']

/** `isNested`: the schema is in an object named after the type, as in Chat Completions. */
export function parseFormat(
  format: RequestFields | undefined,
  isNested: boolean,
  context: ParseContext,
): OutputFormat | undefined {
  const type = format?.text('type')
  if (!format || type === 'text') return undefined
  if (type === 'json_object') return { kind: 'json-object' }
  if (type !== 'json_schema') {
    const name = `${isNested ? 'response' : 'output'} format ${shownWord(type)}`
    return format.refuse('type', `The ${name} is not available for this model.`)
  }
  const wanted = isNested ? format.requiredObject(type) : format
  wanted.warnUnknown(isNested ? schemaMembers : flatMembers, context.warnings)
  const schema = wanted.optionalObject('schema')
  // In Chat Completions, any JSON is accepted without a schema.
  if (!schema) return isNested ? { kind: 'json-object' } : wanted.missing('schema')
  return {
    kind: 'json-schema',
    name: wanted.optionalText('name'),
    description: wanted.optionalText('description'),
    schema: context.rawText(schema.at),
    strict: wanted.optionalBoolean('strict'),
  }
}

/** A grammar whose members stand beside the type, in the form of Chat Completions, which is the canonical one. */
export function nestedGrammar(format: RequestFields): RawJson {
  const grammar = jsonObject({
    definition: jsonString(format.text('definition')),
    syntax: jsonString(format.text('syntax')),
  })
  return jsonObject({ type: '"grammar"', grammar })
}

/** A file by URL, data URL or plain base64. Its content decides whether it is an image or a document. */
export function parseFileData(file: RequestFields): MediaBlock {
  const title = file.optionalText('filename')
  const data = file.text('file_data')
  const pointer = file.pointer('file_data')
  if (isWebUrl(data)) return { kind: 'document', source: readMediaUrl(data, pointer), title }
  const { mediaType, base64 } = readDataUrl(data) ?? { mediaType: 'application/octet-stream', base64: data }
  if (mediaType.startsWith('text/') || mediaType === 'application/json') {
    return { kind: 'document', source: { kind: 'text', text: Buffer.from(base64, 'base64').toString() }, title }
  }
  const medium = mediaByContent(base64, mediaType, pointer)
  return medium.kind === 'document' ? { ...medium, title } : medium
}

/** Audio becomes a document by value; the target decides whether it accepts it. */
export function audioBlock(audio: RequestFields, format: string): DocumentBlock {
  const data = audio.text('data')
  // Plain base64 is documented; some clients send a data URL, as for images.
  const base64 = readDataUrl(data)?.base64 ?? data
  return { kind: 'document', source: { kind: 'data', mediaType: `audio/${format}`, base64 } }
}
