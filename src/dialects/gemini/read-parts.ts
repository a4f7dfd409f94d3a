// The parts of a reply as blocks: where one ends and the next begins, what calls are called, and which block carries the
// provider's signature. It does not know how a reply ends.

import { isRecord, recordOf, textOf } from '../canonical/json.ts'
import type { ReplyBuilder } from '../reply/builder.ts'
import type { SignedPart } from './thought-signature.ts'

/** With `call_` and a number, ids stay within the 40 characters that some callers take. */
const replyIdMax = 28

export class PartReader {
  readonly #ids = new Set<string>()
  /** What the next signature of ours is to carry. */
  #signed: SignedPart | undefined
  /** Of the text that is open or to come; told when the text is over, since a block in the middle would cut it. */
  #textSignature = ''
  /** The last block was this call, and came without a signature. */
  #unsignedCall: string | undefined
  /** Blank text that opened no block: it goes in front of the next text, or is dropped. */
  #blank = ''
  /** A part that is not passed on came since the last block. */
  #isApart = false

  /** `replyId`: the provider's id of the reply, '' if it has none. */
  constructor(
    private readonly reply: ReplyBuilder,
    private readonly replyId: () => string,
  ) {}

  get hasCalls(): boolean {
    return this.#ids.size > 0
  }

  takeSigned(): SignedPart | undefined {
    const signed = this.#signed
    this.#signed = undefined
    return signed
  }

  /** `argumentsAt` gives the arguments of a part's call as they were written. */
  read(parts: readonly unknown[], argumentsAt: (part: number) => string | undefined): void {
    for (const [place, part] of parts.entries()) {
      if (!isRecord(part)) continue
      const signature = textOf(part.thoughtSignature)
      if (isRecord(part.functionCall)) {
        this.#call(part.functionCall, signature, argumentsAt(place))
      } else if (typeof part.text === 'string' || signature !== '') {
        const text = textOf(part.text)
        if (part.thought === true) this.#thought(text, signature)
        else if (text === '') this.#lateSignature(signature)
        else this.#text(text, signature)
      } else {
        // Images, and code the provider runs itself: nothing of the kind was asked for.
        this.#isApart = true
      }
    }
  }

  end(): void {
    this.#endText()
    if (!this.reply.filled) this.reply.text(this.#blank)
  }

  #thought(text: string, signature: string): void {
    this.#endText()
    if (text !== '') this.#unsignedCall = undefined
    this.reply.thinking(text)
    // What is thought behind a signature is another block, with one of its own.
    if (signature !== '') this.#sign({ part: 'thought', signature })
  }

  #text(text: string, signature: string): void {
    if (signature !== '') this.#textSignature = signature
    // A block of nothing but whitespace is refused by some providers when it comes back as history.
    if (this.reply.openKind !== 'text' && text.trim() === '') {
      this.#blank += text
      return
    }
    if (this.#isApart) this.reply.open({ kind: 'text', apart: true })
    this.reply.text(this.#blank + text)
    this.#blank = ''
    this.#isApart = false
    this.#unsignedCall = undefined
  }

  /** In a stream a signature may follow what it signs, on a part with no text. */
  #lateSignature(signature: string): void {
    if (signature === '') return
    if (this.reply.openKind === 'thinking') this.#sign({ part: 'thought', signature })
    else if (this.#unsignedCall !== undefined) this.#sign({ part: 'call', id: this.#unsignedCall, signature })
    else this.#textSignature = signature
    this.#unsignedCall = undefined
  }

  /** Calls come whole. */
  #call(call: Record<string, unknown>, signature: string, written: string | undefined): void {
    const name = textOf(call.name)
    if (name === '') return this.reply.fail('a tool call without a name')
    this.#endText()
    const id = this.#idFor(textOf(call.id))
    if (signature !== '') this.#sign({ part: 'call', id, signature })
    this.reply.open({ kind: 'tool-call', id, name, custom: false })
    this.reply.arguments(isRecord(call.args) ? (written ?? JSON.stringify(recordOf(call.args))) : '{}')
    this.reply.close()
    this.#unsignedCall = signature === '' ? id : undefined
    this.#isApart = false
  }

  /** The given id, or where there is none, one that the reply's own id makes unique in the conversation. */
  #idFor(given: string): string {
    const reply = this.replyId()
      .replaceAll(/[^A-Za-z0-9_-]/g, '')
      .slice(-replyIdMax)
    let id = given
    for (let n = this.#ids.size + 1; id === '' || this.#ids.has(id); n++) id = `call_${reply || 'tg'}_${n}`
    this.#ids.add(id)
    return id
  }

  /** In the thinking block that is open, or in one without words. */
  #sign(signed: SignedPart): void {
    if (this.reply.openKind !== 'thinking') this.reply.open({ kind: 'thinking' })
    this.#signed = signed
    this.reply.close()
    this.#isApart = false
  }

  #endText(): void {
    const signature = this.#textSignature
    this.#textSignature = ''
    if (signature !== '' && this.reply.openKind === 'text') this.#sign({ part: 'text', signature })
  }
}
