/** @jsxImportSource preact */
// A text to be taken away: all of it visible, wrapped instead of cut, with its name and a button that copies it.

import { CopyButton } from '../../shell/copy-button.tsx'

export interface CopiedTextProps {
  readonly title: string
  /** For who cannot see it: `.env lines`. */
  readonly what: string
  readonly text: string
}

export function CopiedText({ title, what, text }: CopiedTextProps) {
  return (
    <div class="copied-text">
      <div class="copied-head">
        <h3>{title}</h3>
        <CopyButton text={text} what={what} label="Copy" />
      </div>
      <pre class="wrap" data-what={what}>
        {text}
      </pre>
    </div>
  )
}
