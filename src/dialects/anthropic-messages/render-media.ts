// Images and documents as blocks. The media type is what the bytes say it is: a wrong label is refused by the provider.

import type { DocumentBlock, ImageBlock, MediaSource, RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { refuseAt } from '../request/fields.ts'
import { knownMediaType, refuseAudio, refuseMediaUrl } from '../request/media.ts'
import { textBlock, type WireBlock } from './wire-block.ts'

const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

/** `place` names the message in a refusal. */
export function renderImage(image: ImageBlock, rules: TargetRules, place: string): WireBlock {
  const { source, cacheMark } = image
  const mediaType = source.kind === 'data' ? knownMediaType(source.base64, source.mediaType) : undefined
  if (mediaType === 'application/pdf') return renderDocument({ ...image, kind: 'document' }, rules, place)
  if (rules.images === false) refuseAt(place, 'This model does not take images.')
  refuseMediaUrl(source, rules, place)
  if (mediaType !== undefined && !imageTypes.includes(mediaType)) {
    refuseAt(place, `An image of type \`${mediaType}\` is not supported; send JPEG, PNG, GIF or WebP.`)
  }
  return { type: 'image', members: [['source', renderSource(source, mediaType)]], markable: true, mark: cacheMark }
}

export function renderDocument(document: DocumentBlock, rules: TargetRules, place: string): WireBlock {
  const { source, title, context, cacheMark } = document
  const rendered = renderDocumentSource(source, rules, place)
  // An empty document is refused like an empty text.
  if (rendered === undefined) return textBlock('', cacheMark)
  const members = [
    ['source', rendered],
    ['title', title === undefined || title === '' ? undefined : jsonString(title)],
    ['context', context === undefined || context === '' ? undefined : jsonString(context)],
  ] as const
  return { type: 'document', members, markable: true, mark: cacheMark }
}

/** undefined = it holds nothing. */
function renderDocumentSource(source: DocumentBlock['source'], rules: TargetRules, place: string): RawJson | undefined {
  if (source.kind === 'text') return renderPlainText(source.text)
  const mediaType = source.kind === 'data' ? knownMediaType(source.base64, source.mediaType) : undefined
  if (source.kind === 'data' && mediaType && /^text\/|^application\/json$/.test(mediaType)) {
    return renderPlainText(Buffer.from(source.base64, 'base64').toString())
  }
  refuseAudio(source, place)
  if (rules.documents === false) refuseAt(place, 'This model does not take documents.')
  refuseMediaUrl(source, rules, place)
  if (mediaType !== undefined && mediaType !== 'application/pdf') {
    refuseAt(place, `A document of type \`${mediaType}\` is not supported; send PDF or plain text.`)
  }
  return renderSource(source, mediaType)
}

function renderPlainText(text: string): RawJson | undefined {
  if (text.trim() === '') return undefined
  return jsonObject([
    ['type', '"text"'],
    ['media_type', '"text/plain"'],
    ['data', jsonString(text)],
  ])
}

function renderSource(source: MediaSource, mediaType: string | undefined): RawJson {
  if (source.kind === 'url') {
    return jsonObject([
      ['type', '"url"'],
      ['url', jsonString(source.url)],
    ])
  }
  return jsonObject([
    ['type', '"base64"'],
    ['media_type', jsonString(mediaType ?? source.mediaType)],
    ['data', jsonString(source.base64)],
  ])
}
