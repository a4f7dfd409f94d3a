/** @jsxImportSource preact */
// A new secret, this once: to be copied as it is, as settings, or as a command; and then the page waits for the first call
// that comes with it. It closes only by its button, since nothing can show the secret again.

import { CopiedText } from '../manage/copied-text.tsx'
import { Sheet } from '../manage/sheet.tsx'
import type { KeyWithSecret } from '../manage/things.ts'
import { FirstCall } from './first-call.tsx'

export interface SecretSheetProps {
  readonly apiKey: KeyWithSecret
  /** How the gateway is reached. */
  readonly address: string
  /** A new key has had no call; of a rotated one the next call may still carry the old secret. */
  readonly isNew: boolean
  onClose(): void
}

export function SecretSheet({ apiKey, address, isNew, onClose }: SecretSheetProps) {
  const { name, secret } = apiKey
  return (
    <Sheet title={`The secret of ${name}`} isSticky onClose={onClose}>
      <div class="sheet-form">
        <p class="warning">
          <strong>It is shown this once.</strong> Copy it now. A lost secret cannot be read again, only rotated.
        </p>
        <CopiedText title="The secret" what="secret" text={secret} />
        {isNew && <FirstCall keyId={apiKey.id} />}
        <CopiedText title="As settings, for .env" what=".env lines" text={environmentText(address, secret)} />
        <CopiedText
          title="For a client on your machine"
          what="connect line"
          text={`TOLLGATE_KEY=${secret} npx tollgate connect claude`}
        />
        <CopiedText title="Or try it now" what="curl line" text={curlText(address, secret)} />
        <div class="form-actions sheet-foot">
          <button type="button" class="button" onClick={onClose}>
            Done, I have copied it
          </button>
        </div>
      </div>
    </Sheet>
  )
}

function environmentText(address: string, secret: string): string {
  return [
    `OPENAI_BASE_URL=${address}/v1`,
    `OPENAI_API_KEY=${secret}`,
    `ANTHROPIC_BASE_URL=${address}`,
    `ANTHROPIC_API_KEY=${secret}`,
  ].join('\n')
}

function curlText(address: string, secret: string): string {
  return [
    `curl -N ${address}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer ${secret}" -H "Content-Type: application/json" \\`,
    `  -d '{"model":"sandbox/echo","stream":true,"messages":[{"role":"user","content":"hello"}]}'`,
  ].join('\n')
}
