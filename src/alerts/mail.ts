// E-mail over SMTP, if it is configured: alerts, invitations and links to set a new password. Each mail is plain text with a
// small HTML version.

import { createTransport } from 'nodemailer'
import type { Secret } from '../kernel/secret.ts'
import type { Alert } from './alerts.ts'

export interface Mail {
  readonly to: string
  readonly subject: string
  /** Paragraphs. */
  readonly text: readonly string[]
  /** Below the text. */
  readonly link: { readonly label: string; readonly url: string }
  /** Why the reader gets it. */
  readonly footer: string
}

export interface MailFault {
  readonly message: string
  /** The server refused this address or message for good. */
  readonly isFinal: boolean
}

export interface Mailer {
  /** undefined = the mail server accepted it. */
  send(mail: Mail): Promise<MailFault | undefined>
}

export interface MailSettings {
  /** `smtp://user:password@host:587` or `smtps://…` */
  readonly url: Secret
  /** `Tollgate <tollgate@example.com>` */
  readonly from: string
}

const attemptMs = 10_000

export function createMailer({ url, from }: MailSettings): Mailer {
  const waits = { connectionTimeout: attemptMs, greetingTimeout: attemptMs, socketTimeout: attemptMs }
  const transport = createTransport({ url: url.reveal(), ...waits })
  return {
    async send(mail) {
      try {
        await transport.sendMail({ from, to: mail.to, subject: mail.subject, text: plainText(mail), html: html(mail) })
        return undefined
      } catch (error) {
        return faultOf(error)
      }
    },
  }
}

/** RFC 5321: 4xx is temporary, 5xx is final. A refused password is 5xx too, but the operator can fix it, so it is retried. */
function faultOf(error: unknown): MailFault {
  const { code, responseCode } = error as { readonly code?: string; readonly responseCode?: number }
  if (code === 'EAUTH') return { message: 'the mail server refused the user or password', isFinal: false }
  if (responseCode === undefined) return { message: `no connection to the mail server (${code})`, isFinal: false }
  return { message: `the mail server answered ${responseCode}`, isFinal: responseCode >= 500 }
}

function plainText({ text, link, footer }: Mail): string {
  return [...text, `${link.label}: ${link.url}`, '-- ', footer, ''].join('\n\n').replace('-- \n\n', '-- \n')
}

function html({ subject, text, link, footer }: Mail): string {
  const { escapeHTML } = Bun
  const paragraphs = text.map((each) => `<p>${escapeHTML(each)}</p>`).join('\n')
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escapeHTML(subject)}</title></head>
<body style="font: 16px/1.5 sans-serif; max-width: 36em">
${paragraphs}
<p><a href="${escapeHTML(link.url)}">${escapeHTML(link.label)}</a></p>
<p style="color: #666; font-size: 13px">${escapeHTML(footer)}</p>
</body></html>
`
}

const subjects: Readonly<Record<Alert['kind'], string>> = {
  'balance.low': 'Low balance',
  'limit.reached': 'Spend limit',
  'provider.down': 'Provider down',
  'provider.up': 'Provider works again',
  'provider.stray': 'Stray response',
  'price.changed': 'Prices changed',
  'bill.differs': 'A provider’s bill differs',
  'topup.failed': 'Automatic top-up failed',
  'plan.unpaid': 'Plan not paid',
  'credit.expiring': 'Credit expires soon',
  'batch.ended': 'Batch ended',
  test: 'Test',
}

/** One line. */
export function alertSubject({ kind, data }: Alert): string {
  const { workspace_name, name, provider, percent } = data
  const about = [workspace_name ?? name ?? provider, percent === undefined ? undefined : `${percent} %`]
  const details = about.filter((each) => each !== undefined).join(', ')
  // People choose the names, and a line break would end the header.
  return `${subjects[kind]}${details && `: ${details}`}`.replaceAll(/\s+/g, ' ')
}

/** `isNamedByRule`: an address without an account. */
export function alertMail(
  alert: Alert,
  { email, isNamedByRule }: { readonly email: string; readonly isNamedByRule: boolean },
  address: string,
): Mail {
  const footer = isNamedByRule
    ? `You get this because an alert rule at ${address} names your address. Ask its admins to remove it.`
    : `You get this because of an alert rule at ${address}. Choose your e-mails under Account.`
  return {
    to: email,
    subject: alertSubject(alert),
    text: [alert.message],
    link: { label: 'Open the console', url: `${address}/console/alerts` },
    footer,
  }
}

/** `place` is a workspace's name; undefined = the whole installation. */
export function invitationMail(
  { email, role, days }: { readonly email: string; readonly role: string; readonly days: number },
  place: string | undefined,
  url: string,
): Mail {
  const where = place ?? new URL(url).host
  return {
    to: email,
    subject: `Invitation to ${where}`.replaceAll(/\s+/g, ' '),
    text: [
      `You are invited to ${where} with the role ${role}.`,
      `The link works once, for ${days} days, and only for ${email}.`,
    ],
    link: { label: 'Accept the invitation', url },
    footer: 'If you did not expect this, ignore it: nothing happens unless you accept.',
  }
}

export function resetMail(email: string, url: string): Mail {
  return {
    to: email,
    subject: 'Set a new password',
    text: ['An admin created a link for you to set a new password. It works once, within a day.'],
    link: { label: 'Set a new password', url },
    footer: 'If you did not ask for it, ignore it: your password does not change.',
  }
}
