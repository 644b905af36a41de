# A whole guest in one boot sector: it beats on COM1, answers the ACPI power button, and obeys COM1.
#
# Says:   B booted   . beat (every fifth BIOS tick, 0.27 s)   P power button seen   O powers itself off
#         H hangs   Z hibernates
# Hears:  o power off by itself   r reset   h hang with interrupts off   z hibernate (S4; it has no image)
#
# PM1 event block: status at PM_BASE, enable at PM_BASE+2, control at PM_BASE+4 (ACPI specification, 4.8.3).
# SeaBIOS puts it at 0x600; S5 is sleep type 0 on QEMU's PIIX4, S4 is 2. VirtualBox: 0x4000, S5 is 5.
#
# Build: as --32 [--defsym DEAF=1] [--defsym PM_BASE=…] [--defsym S5=…] boot_sector.s -o x.o &&
#        ld -m elf_i386 -Ttext 0x7c00 --oformat binary x.o -o x

    .code16
    .globl _start
    .set COM1, 0x3f8
    .ifndef PM_BASE
    .set PM_BASE, 0x600
    .endif
    .ifndef S5
    .set S5, 0
    .endif
    .set S4, 2
    .set POWER_BUTTON, 0x100
    .set SLEEP_ENABLE, 0x2000
    .set BIOS_TICKS, 0x46c
    .set TICKS_A_BEAT, 5

_start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %ss
    movw $0x7c00, %sp
    sti
    movb $'B', %al
    call say
    movw $0xa1, %dx             # mask IRQ 9: no SCI, the button is polled
    inb %dx, %al
    orb $2, %al
    outb %al, %dx
    movw $(PM_BASE + 2), %dx    # QEMU latches the button only where its event is enabled
    movw $POWER_BUTTON, %ax
    outw %ax, %dx

beat:
    movb $'.', %al
    call say
    movw $TICKS_A_BEAT, %cx
tick:
    movw BIOS_TICKS, %bx
sleep:
    hlt
    cmpw BIOS_TICKS, %bx
    je sleep
    call look_at_button
    call listen
    loop tick
    jmp beat

look_at_button:
    movw $PM_BASE, %dx
    inw %dx, %ax
    testw $POWER_BUTTON, %ax
    jz done
    movw $POWER_BUTTON, %ax     # writing the bit clears it
    outw %ax, %dx
    movb $'P', %al
    call say
    .ifndef DEAF
    jmp power_off
    .endif
done:
    ret

listen:
    movw $(COM1 + 5), %dx       # line status, bit 0: a byte waits
    inb %dx, %al
    testb $1, %al
    jz done
    movw $COM1, %dx
    inb %dx, %al
    cmpb $'o', %al
    je power_off
    cmpb $'r', %al
    je reset
    cmpb $'z', %al
    je hibernate
    cmpb $'h', %al
    jne done
    cli
    movb $'H', %al
    call say
hang:
    jmp hang

reset:
    movw $0xcf9, %dx            # the chipset's reset control
    movb $6, %al
    outb %al, %dx
    jmp hang

hibernate:
    movb $'Z', %al
    movw $(SLEEP_ENABLE + S4 * 0x400), %bx
    jmp fall_asleep

power_off:
    movb $'O', %al
    movw $(SLEEP_ENABLE + S5 * 0x400), %bx
fall_asleep:
    call say
    movw $(PM_BASE + 4), %dx
    movw %bx, %ax
    outw %ax, %dx
    cli
    jmp hang

say:
    movw $COM1, %dx
    outb %al, %dx
    ret

    .org 510
    .word 0xaa55
