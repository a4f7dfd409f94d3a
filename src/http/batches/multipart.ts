// Reads a form with a file (`multipart/form-data`, RFC 7578) piece by piece: a file is never in memory as a whole.

import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { bodyFailure, type ClientRequest } from '../../pipeline/client-request.ts'
import { BodyFault, type BodyReader } from '../../wire/read-body.ts'

export interface FormPart {
  readonly name: string
  /** undefined = it is a field, and no file. */
  readonly fileName: string | undefined
  /** To be read to its end before the next part. */
  readonly content: AsyncGenerator<Buffer>
}

const headMax = 16 * 1024
const blankLine = Buffer.from('\r\n\r\n')

/** The parts of a form, in the order of the body. Throws a Failure for a body that is none, or that has more than `bytesMax`. */
export async function* readForm(request: ClientRequest, bytesMax: number): AsyncGenerator<FormPart> {
  const boundary = boundaryOf(request)
  const reader = request.body?.getReader()
  if (boundary === undefined || !reader)
    throw invalidRequest('The body must be a form: multipart/form-data with a file.')
  const form = new FormReader(reader, Buffer.from(`\r\n--${boundary}`), bytesMax)
  try {
    for (let part = await form.next(); part; part = await form.next()) yield part
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** A short field as text. */
export async function fieldText({ content, name }: FormPart): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of content) {
    bytes += piece.length
    if (bytes > headMax) throw invalidRequest(`The field \`${name}\` is too long.`, name)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

function boundaryOf({ headers }: ClientRequest): string | undefined {
  const type = headers.get('content-type') ?? ''
  if (!/^multipart\/form-data\s*;/i.test(type)) return undefined
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(type) ?? []
  return quoted ?? plain
}

class FormReader {
  /** Begins as if a line had ended, so that the first delimiter is found as the others are. */
  #waiting = Buffer.from('\r\n')
  #read = 0
  /** The content before has been read to its end. */
  #isAfterDelimiter = false

  constructor(
    private readonly reader: BodyReader,
    private readonly delimiter: Buffer,
    private readonly bytesMax: number,
  ) {}

  async next(): Promise<FormPart | undefined> {
    if (!this.#isAfterDelimiter) for await (const _ of this.#upToDelimiter());
    this.#isAfterDelimiter = false
    while (this.#waiting.length < 2) await this.#more()
    if (this.#waiting.subarray(0, 2).toString() === '--') return undefined
    let end = this.#waiting.indexOf(blankLine)
    while (end < 0) {
      if (this.#waiting.length > headMax) throw invalidRequest('The head of a part of the form is too long.')
      await this.#more()
      end = this.#waiting.indexOf(blankLine)
    }
    const head = this.#waiting.subarray(0, end).toString()
    // Its second line feed belongs to the content, whose delimiter may follow at once.
    this.#waiting = this.#waiting.subarray(end + 2)
    const [, name] = /^content-disposition:[^\r\n]*[; ]name="([^"]*)"/im.exec(head) ?? []
    const [, fileName] = /^content-disposition:[^\r\n]*; ?filename="([^"]*)"/im.exec(head) ?? []
    if (name === undefined) throw invalidRequest('A part of the form has no name.')
    return { name, fileName, content: this.#content() }
  }

  async *#content(): AsyncGenerator<Buffer> {
    let isFirst = true
    for await (const piece of this.#upToDelimiter()) {
      const bytes = isFirst ? piece.subarray(2) : piece
      isFirst = false
      if (bytes.length > 0) yield bytes
    }
  }

  /** The bytes before the next delimiter, which is taken away. */
  async *#upToDelimiter(): AsyncGenerator<Buffer> {
    for (;;) {
      const at = this.#waiting.indexOf(this.delimiter)
      if (at >= 0) {
        const piece = this.#waiting.subarray(0, at)
        this.#waiting = this.#waiting.subarray(at + this.delimiter.length)
        this.#isAfterDelimiter = true
        if (piece.length > 0) yield piece
        return
      }
      const sure = this.#waiting.length - this.delimiter.length
      if (sure > 2) {
        const piece = this.#waiting.subarray(0, sure)
        this.#waiting = this.#waiting.subarray(sure)
        yield piece
      }
      await this.#more()
    }
  }

  async #more(): Promise<void> {
    const { done, value } = await this.reader.read().catch((error: unknown) => {
      throw bodyFailure(error instanceof BodyFault ? error : new BodyFault('aborted'), '')
    })
    if (done || !value) throw invalidRequest('The form ends before its last boundary.')
    this.#read += value.length
    if (this.#read > this.bytesMax) {
      const mebibytes = Math.floor(this.bytesMax / 2 ** 20)
      const message = `The file is larger than this gateway takes (${mebibytes} MiB). Split it into several batches.`
      throw new Failure('PAYLOAD_TOO_LARGE', message)
    }
    this.#waiting = Buffer.concat([this.#waiting, value])
  }
}
