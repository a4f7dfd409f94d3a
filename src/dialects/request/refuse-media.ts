// Media that a target does not take, refused by name before anything is sent. The gateway fetches nothing and turns
// nothing into another form; another route of the model may be able to take them.

import type { DocumentBlock, MediaSource } from '../canonical/conversation.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { refuseAt } from './request-fields.ts'

/** `place` names the message. */
export function refuseAddress({ kind }: MediaSource, { mediaUrls }: TargetRules, place: string): void {
  if (kind === 'url' && mediaUrls === false) {
    refuseAt(place, 'This model does not take images and documents by URL here; send the data instead.')
  }
}

/** For dialects without a block for it: sound comes as a document by value. */
export function refuseSound(source: DocumentBlock['source'], place: string): void {
  if (isSound(source)) refuseAt(place, 'This model does not take audio; send its text instead.')
}

export function isSound(source: DocumentBlock['source']): boolean {
  return source.kind === 'data' && source.mediaType.startsWith('audio/')
}
