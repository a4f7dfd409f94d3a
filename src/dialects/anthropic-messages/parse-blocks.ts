// Content blocks of user messages and of tool results: text, media, search results. What the canonical form has no
// block for becomes text, in its place.

import type { DocumentBlock, ImageBlock, MediaSource, TextBlock } from '../canonical/conversation.ts'
import { isRecord } from '../canonical/json.ts'
import { type RequestFields, shownWord } from '../request/fields.ts'
import { knownMediaType, readMediaUrl } from '../request/media.ts'
import { markOf, type ParseContext } from './parse-context.ts'

export type ContentBlock = TextBlock | ImageBlock | DocumentBlock

const blockMembers: ReadonlySet<string> = new Set([
  ...['type', 'text', 'source', 'title', 'context', 'content', 'citations', 'transformations', 'cache_control'],
])
const sourceMembers: ReadonlySet<string> = new Set(['type', 'data', 'media_type', 'url', 'file_id', 'content'])

/** What is written on a block of content and has no place in the canonical form. */
export function warnBlockMembers(fields: RequestFields, { warnings }: ParseContext): void {
  if (!contentTypes.has(fields.optionalText('type') ?? 'text')) return
  fields.warnUnknown(blockMembers, warnings)
  if (isRecord(fields.value('source'))) fields.optionalObject('source')?.warnUnknown(sourceMembers, warnings)
}

const contentTypes: ReadonlySet<string> = new Set(['text', 'image', 'document', 'search_result'])

/** undefined = a type that is not content. */
export function parseContentBlock(fields: RequestFields, context: ParseContext): ContentBlock[] | undefined {
  warnBlockMembers(fields, context)
  switch (fields.text('type')) {
    case 'text':
      return [parseText(fields, context)]
    case 'image':
      return [parseImage(fields, context)]
    case 'document':
      return parseDocument(fields, context)
    case 'search_result':
      return [parseSearchResult(fields, context)]
    default:
      return undefined
  }
}

export function parseText(fields: RequestFields, { warnings }: ParseContext): TextBlock {
  if ((fields.optionalList('citations') ?? []).length > 0)
    warnings.add('citations_dropped', fields.pointer('citations'))
  return { kind: 'text', text: fields.text('text'), ...markOf(fields) }
}

/** By what its bytes are: a PDF that came as an image is a document. */
function parseImage(fields: RequestFields, { warnings }: ParseContext): ImageBlock | DocumentBlock {
  if (fields.value('transformations') !== undefined) {
    warnings.add('transformations_dropped', fields.pointer('transformations'))
  }
  const source = fields.optionalObject('source') ?? fields.missing('source')
  const media = parseMedia(source)
  if (media.kind === 'data' && media.mediaType === 'application/pdf') {
    return { kind: 'document', source: media, ...markOf(fields) }
  }
  if (media.kind === 'data' && !imageTypes.includes(media.mediaType)) {
    source.refuse('media_type', 'Images of this type are not supported; send JPEG, PNG, GIF or WebP.')
  }
  return { kind: 'image', source: media, ...markOf(fields) }
}

const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

function parseMedia(source: RequestFields): MediaSource {
  const type = source.text('type')
  if (type === 'base64') {
    const base64 = source.text('data')
    return { kind: 'data', mediaType: knownMediaType(base64, source.text('media_type')), base64 }
  }
  if (type === 'url') return readMediaUrl(source.text('url'), source.pointer('url'))
  if (type === 'file') {
    return source.refuse(
      'file_id',
      'Files by id are kept by Anthropic and not available for this model; send the data.',
    )
  }
  return source.refuse('type', `The source type ${shownWord(type)} is not supported for this model.`)
}

function parseDocument(fields: RequestFields, context: ParseContext): ContentBlock[] {
  const source = fields.optionalObject('source') ?? fields.missing('source')
  if (fields.optionalObject('citations')?.optionalBoolean('enabled')) {
    context.warnings.add('citations_dropped', fields.pointer('citations'))
  }
  const title = fields.optionalText('title')
  const about = fields.optionalText('context')
  const named = { ...(title === undefined ? {} : { title }), ...(about === undefined ? {} : { context: about }) }
  const document = (of: DocumentBlock['source']): DocumentBlock => ({ kind: 'document', source: of, ...named })
  const type = source.text('type')
  if (type === 'text') return [{ ...document({ kind: 'text', text: source.text('data') }), ...markOf(fields) }]
  if (type !== 'content') return [{ ...document(parseMedia(source)), ...markOf(fields) }]
  if (typeof source.value('content') === 'string') {
    return [{ ...document({ kind: 'text', text: source.text('content') }), ...markOf(fields) }]
  }
  const parts = namedParts(parseParts(source, context), named)
  const last = parts.at(-1)
  return last ? [...parts.slice(0, -1), { ...last, ...markOf(fields) }] : []
}

/** A document made of blocks falls apart into its texts and images, in order. */
function parseParts(source: RequestFields, context: ParseContext): (ImageBlock | DocumentBlock)[] {
  return source.objects('content').map((part) => {
    const type = part.text('type')
    warnBlockMembers(part, context)
    if (type === 'image') return parseImage(part, context)
    if (type === 'text') return { kind: 'document', source: { kind: 'text', text: part.text('text') }, ...markOf(part) }
    return part.refuse('type', `A document cannot hold a ${shownWord(type)} block.`)
  })
}

/** What names the whole is said once: the title before everything, the rest behind it, as of one document. */
function namedParts(
  parts: readonly (ImageBlock | DocumentBlock)[],
  { title, context }: Pick<DocumentBlock, 'title' | 'context'>,
): ContentBlock[] {
  const named: ContentBlock[] = [...parts]
  const [first] = named
  if (title && first) {
    if (first.kind === 'document') named[0] = { ...first, title }
    else named.unshift({ kind: 'text', text: title })
  }
  const last = named.at(-1)
  if (context && last) {
    if (last.kind === 'document') named[named.length - 1] = { ...last, context }
    else named.push({ kind: 'text', text: context })
  }
  return named
}

function parseSearchResult(fields: RequestFields, context: ParseContext): TextBlock {
  if (fields.optionalObject('citations')?.optionalBoolean('enabled')) {
    context.warnings.add('citations_dropped', fields.pointer('citations'))
  }
  const parts = fields.objects('content')
  for (const part of parts) warnBlockMembers(part, context)
  const body = parts.map((part) => part.text('text'))
  const text = [fields.text('title'), fields.text('source'), '', ...body].join('\n')
  // The parts become one text, so a mark inside counts for the whole.
  const marks = [...parts, fields].map(markOf).filter(({ cacheMark }) => cacheMark)
  return { kind: 'text', text, ...marks.at(-1) }
}
